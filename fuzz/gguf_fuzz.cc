// Parses any bytes as a GGUF header and walks all that the file says.
#include "gguf/test_support.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  strata::testing::walk_file(bytes, size);
  // As the first read of a file of which more is still to come.
  strata::testing::walk_file(bytes, size + strata::kMiB);
  return 0;
}
