#include "serve_options.h"

#include <gtest/gtest.h>

namespace strata::apps {
namespace {

TEST(ServeOptions, LetAsManyRequestsWaitForAWorkerAsForAModel) {
  for (const std::size_t queue : {1, 1024, 100'000}) {
    ServeOptions options;
    options.queue = queue;
    const auto http = http_options(options, kGiB);
    ASSERT_TRUE(http.ok()) << http.status().message();
    EXPECT_GE(http->max_queued, queue);
  }
}

TEST(ServeOptions, LeaveDescriptorsForMoreThanConnections) {
  EXPECT_EQ(connections_within(1024, 1 << 20), 1024u);
  EXPECT_EQ(connections_within(1024, 2048), 1024u);
  for (const std::size_t descriptors : {1, 20, 100, 256, 257, 258, 259, 300, 1024}) {
    const std::size_t fewer = connections_within(1024, descriptors);
    EXPECT_GE(fewer, 1u);
    EXPECT_LE(fewer, descriptors);
    EXPECT_EQ(connections_within(1, descriptors), 1u);
    if (descriptors >= 256) {
      EXPECT_LE(fewer + http::kMostRefusing + 60, descriptors);
    }
  }
}

}  // namespace
}  // namespace strata::apps
