// Thousands of damaged files through the reader and every getter. What counts is that all return;
// sanitizers watch.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/file.h"
#include "gguf/test_support.h"

namespace strata {
namespace {

using testing::ByteVector;

constexpr std::uint64_t kExtremes[] = {0,
                                       1,
                                       0x7f,
                                       0xff,
                                       0x7fffffff,
                                       0x80000000,
                                       0xffffffff,
                                       std::uint64_t{1} << 32,
                                       std::uint64_t{1} << 62,
                                       ~std::uint64_t{0} >> 1,
                                       std::uint64_t{1} << 63,
                                       ~std::uint64_t{0} - 31,
                                       ~std::uint64_t{0}};

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  std::size_t below(std::size_t limit) { return random_() % limit; }

  // One to four changes: bits flipped, numbers replaced by extremes, pieces repeated, ends cut.
  void mutate(ByteVector& bytes) {
    for (std::size_t change = below(4) + 1; change > 0 && bytes.size() > 16; --change) {
      const std::size_t at = below(bytes.size() - 8);
      switch (below(5)) {
        case 0: bytes[at] ^= static_cast<std::uint8_t>(1u << below(8)); break;
        case 1: replace(bytes, at, 8); break;
        case 2: replace(bytes, at, 4); break;
        case 3: {
          const std::size_t length = below(bytes.size() - at);
          const ByteVector piece(bytes.begin() + at, bytes.begin() + at + length);
          bytes.insert(bytes.begin() + below(bytes.size()), piece.begin(), piece.end());
          break;
        }
        default: bytes.resize(at + 1);
      }
    }
  }

 private:
  void replace(ByteVector& bytes, std::size_t at, std::size_t width) {
    const std::uint64_t value = kExtremes[below(std::size(kExtremes))];
    std::memcpy(bytes.data() + at, &value, width);
  }

  std::mt19937 random_;
};

TEST(Gguf, TwentyThousandMutatedFilesNeverCrash) {
  const auto samples = testing::sample_files();
  Mutator mutator(20);
  std::size_t seen = 0;
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    ByteVector bytes = samples[static_cast<std::size_t>(i) % samples.size()].bytes;
    mutator.mutate(bytes);
    // Also with a claimed length that is larger or smaller than the bytes at hand.
    const Bytes claimed = bytes.size() + mutator.below(3) * 1000 - mutator.below(2);
    seen += testing::walk_file(bytes, claimed);
    accepted += GgufFile::parse(bytes, claimed, "m.gguf").ok() ? 1 : 0;
  }
  EXPECT_GT(seen, 0u);
  // The walk behind the parser is worth something only where some files get there.
  EXPECT_GT(accepted, 500);
  EXPECT_LT(accepted, 19000);
}

TEST(Gguf, FuzzSeedsAreTheSampleFiles) {
  for (const auto& sample : testing::sample_files()) {
    const auto file = File::open(STRATA_SOURCE_DIR "/fuzz/corpus/gguf/" + sample.name + ".gguf");
    ASSERT_TRUE(file.ok()) << file.status().message() << "; write it with gguf_seeds";
    ByteVector bytes(file->size());
    ASSERT_TRUE(file->read_exactly(0, bytes).ok());
    EXPECT_EQ(bytes, sample.bytes) << sample.name << " is stale; write it with gguf_seeds";
  }
}

}  // namespace
}  // namespace strata
