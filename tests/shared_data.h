// Where tests find the reference data that lies beside some checkouts, in ../shared/data.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace strata::testing {

inline std::filesystem::path shared_data_root() {
  return std::filesystem::path(STRATA_SOURCE_DIR) / ".." / "shared" / "data";
}

inline bool shared_data_present() { return std::filesystem::exists(shared_data_root()); }

}  // namespace strata::testing

// Skips the test where the checkout has no reference data beside it; once the folder is there,
// a missing file is a failure, never a skip.
#define STRATA_REQUIRE_SHARED_DATA()             \
  if (!::strata::testing::shared_data_present()) \
  GTEST_SKIP() << "no reference data beside this checkout (../shared/data): not tested"
