#include "page_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"

namespace strata::apps {
namespace {

namespace fs = std::filesystem;

TEST(PageCache, ForgetsNoFileThatIsMemoryAndHarmsNone) {
  EXPECT_FALSE(drop_pages("/nowhere"));
  EXPECT_FALSE(drop_pages("/dev/null"));
  const fs::path memory = "/dev/shm";
  for (const fs::path& folder : {memory, fs::path(::testing::TempDir())}) {
    if (!fs::is_directory(folder)) continue;
    const std::string path = (folder / fmt::format("strata_pages_{}", ::getpid())).string();
    const std::vector<std::uint8_t> data(100'001, 7);
    auto file = File::create_new(path);
    ASSERT_TRUE(file.ok() && file->write(data).ok() && file->close().ok());
    const bool forgotten = drop_pages(path);
    EXPECT_FALSE(forgotten && folder == memory);
    std::vector<std::uint8_t> back(data.size());
    EXPECT_TRUE(File::open(path)->read_exactly(0, back).ok());
    EXPECT_EQ(back, data);
    fs::remove(path);
  }
}

}  // namespace
}  // namespace strata::apps
