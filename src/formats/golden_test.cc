// Decoding and encoding held against the PyPI package gguf: tools/make_format_goldens.py.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "formats/all.h"
#include "formats/registry.h"

namespace strata {
namespace {

// Reads numbers off a golden; running past its end is a test failure.
class Golden {
 public:
  explicit Golden(const std::string& name) {
    std::ifstream file(STRATA_SOURCE_DIR "/src/formats/testdata/" + name, std::ios::binary);
    EXPECT_TRUE(file.good()) << name;
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
  }
  bool done() const { return at_ == bytes_.size(); }

  template <class T>
  std::vector<T> read(std::size_t n) {
    std::vector<T> out(n);
    if (n * sizeof(T) > bytes_.size() - at_) {
      ADD_FAILURE() << "the golden is cut short";
      at_ = bytes_.size();
      return out;
    }
    std::memcpy(out.data(), bytes_.data() + at_, n * sizeof(T));
    at_ += n * sizeof(T);
    return out;
  }
  template <class T>
  T read() {
    return read<T>(1)[0];
  }

 private:
  std::vector<char> bytes_;
  std::size_t at_ = 0;
};

bool same_bits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

TEST(Golden, EveryFormatDecodesBitForBit) {
  Golden golden("decode.bin");
  std::set<FormatId> seen;
  while (!golden.done()) {
    const auto id = static_cast<FormatId>(golden.read<std::uint32_t>());
    const FormatOps* ops = find_format(id);
    ASSERT_NE(ops, nullptr);
    ASSERT_EQ(golden.read<std::uint32_t>(), ops->info.block_bytes);
    ASSERT_EQ(golden.read<std::uint32_t>(), ops->info.block_elements);
    const std::size_t blocks = golden.read<std::uint32_t>();
    const auto row = golden.read<std::uint8_t>(blocks * ops->info.block_bytes);
    const auto expected = golden.read<float>(blocks * ops->info.block_elements);
    std::vector<float> got(expected.size());
    ops->decode_row(row.data(), static_cast<std::int64_t>(got.size()), got.data());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_TRUE(same_bits(got[i], expected[i]))
          << ops->info.name << " element " << i << ": " << got[i] << " for " << expected[i];
    seen.insert(id);
  }
  const auto all = ids_of(AllFormats{});
  EXPECT_EQ(seen, std::set<FormatId>(all.begin(), all.end()));
}

TEST(Golden, EncodingErrsNoMoreThanGguf) {
  Golden golden("encode.bin");
  const std::size_t groups = golden.read<std::uint32_t>();
  const std::size_t count = golden.read<std::uint32_t>();
  const auto x = golden.read<float>(groups * count);
  int formats = 0;
  for (; !golden.done(); ++formats) {
    const FormatOps* ops = find_format(static_cast<FormatId>(golden.read<std::uint32_t>()));
    ASSERT_NE(ops, nullptr);
    const auto n = static_cast<std::int64_t>(count);
    std::vector<std::uint8_t> row(row_bytes(ops->info, n));
    std::vector<float> back(count);
    for (std::size_t group = 0; group < groups; ++group) {
      const float* in = x.data() + group * count;
      ops->encode_row(in, n, row.data());
      ops->decode_row(row.data(), n, back.data());
      double squares = 0;
      for (std::size_t i = 0; i < count; ++i) squares += std::pow(double{back[i]} - in[i], 2);
      const double limit = 1.05 * golden.read<double>();
      EXPECT_LE(squares / static_cast<double>(count), limit) << ops->info.name << " " << group;
    }
  }
  EXPECT_EQ(formats, 10);
}

}  // namespace
}  // namespace strata
