// Renders any bytes as a chat template over inputs of every shape.
#include <cstdint>

#include "text/template/test_support.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  strata::testing::try_render(source, strata::testing::sample_inputs());
  return 0;
}
