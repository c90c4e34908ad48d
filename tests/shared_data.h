// Where tests find the reference data that lies beside some checkouts, in ../shared/data.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace strata::testing {

inline std::filesystem::path shared_data_root() {
  return std::filesystem::path(STRATA_SOURCE_DIR) / ".." / "shared" / "data";
}

inline bool shared_data_present() { return std::filesystem::exists(shared_data_root()); }

// Its bytes; none where it cannot be read.
inline std::string read_file(const std::filesystem::path& path) {
  const std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

// The files of a reference model without their extensions: committed ones, else shared ones.
inline std::string reference_path(const std::string& name) {
  const auto committed = std::filesystem::path(STRATA_SOURCE_DIR) / "tests" / "data" / name;
  if (std::filesystem::exists(committed.string() + ".gguf")) return committed.string();
  return (shared_data_root() / "reference" / name).string();
}

}  // namespace strata::testing

// Skips the test where the checkout has no reference data beside it; once the folder is there,
// a missing file is a failure, never a skip.
#define STRATA_REQUIRE_SHARED_DATA()             \
  if (!::strata::testing::shared_data_present()) \
  GTEST_SKIP() << "no reference data beside this checkout (../shared/data): not tested"

#define STRATA_REQUIRE_REFERENCE(name)                                             \
  if (!std::filesystem::exists(::strata::testing::reference_path(name) + ".gguf")) \
  STRATA_REQUIRE_SHARED_DATA()
