// Factors that a file keeps beside a weight: `<name>.scale`, one per slice of `<name>.weight`.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>

#include "base/file.h"
#include "formats/registry.h"
#include "gguf/writer.h"
#include "tests/model_fixture.h"
#include "tests/shared_data.h"

namespace strata {
namespace {

// Of slice i: a power of two, so that dividing the weights and multiplying the product are exact.
float factor(std::size_t slice) { return std::ldexp(1.0f, 3 - 2 * static_cast<int>(slice)); }

using Floats = std::vector<float>;

std::span<const std::uint8_t> bytes_of(const Floats& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(float)};
}

// Writes a copy of a model whose projections are divided by their factors, with these beside them;
// `kept_factors` says how many per projection.
class ScaledCopy {
 public:
  ScaledCopy(const std::string& from, const std::string& to,
             const std::function<std::size_t(std::size_t slices)>& kept_factors)
      : file_(GgufFile::open(from).value()), kept_factors_(kept_factors) {
    const File source = File::open(from).value();
    for (const std::string_view key : file_.metadata().keys())
      writer_.add(key, *file_.metadata().find(key));
    for (const TensorInfo& tensor : file_.tensors()) add(tensor, source);
    const Status status = writer_.write(to);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  int scaled() const { return scaled_; }

 private:
  static bool is_projection(const TensorInfo& tensor) {
    return tensor.dimensions > 1 && tensor.name.ends_with(".weight") &&
           tensor.name.find("ffn_gate_inp") == std::string::npos &&
           tensor.name != "token_embd.weight";
  }

  void add(const TensorInfo& tensor, const File& source) {
    std::vector<std::uint8_t> bytes(tensor.bytes);
    ASSERT_TRUE(source.read_exactly(tensor.offset, bytes).ok());
    Floats& values = data_.emplace_back(tensor.row_elements() * tensor.rows());
    find_format(tensor.format)
        ->decode_row(bytes.data(), static_cast<std::int64_t>(values.size()), values.data());
    if (is_projection(tensor)) divide(tensor, values);
    writer_.add_tensor(tensor.name, FormatId::F32, std::span(tensor.shape).first(tensor.dimensions),
                       bytes_of(values));
  }

  void divide(const TensorInfo& tensor, Floats& values) {
    const std::size_t slices = tensor.shape[2];
    const std::size_t slice_size = values.size() / slices;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] /= factor(i / slice_size);
    const std::string name = tensor.name.substr(0, tensor.name.size() - std::strlen(".weight"));
    Floats& factors = data_.emplace_back();
    for (std::size_t i = 0; i < kept_factors_(slices); ++i) factors.push_back(factor(i));
    const std::uint64_t shape[] = {factors.size()};
    writer_.add_tensor(name + ".scale", FormatId::F32, shape, bytes_of(factors));
    writer_.add_tensor(name + ".input_scale", FormatId::F32, shape, bytes_of(factors));
    ++scaled_;
  }

  const GgufFile file_;
  const std::function<std::size_t(std::size_t)> kept_factors_;
  GgufWriter writer_;
  std::deque<Floats> data_;
  int scaled_ = 0;
};

std::string reference_path(const std::string& model) {
  return (testing::shared_data_root() / "reference" / (model + ".gguf")).string();
}

class WeightScale : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { STRATA_REQUIRE_SHARED_DATA(); }
};

TEST_P(WeightScale, MultipliesTheProductOfItsSlice) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("scaled.gguf");
  const ScaledCopy copy(reference_path(GetParam()), path,
                        [](std::size_t slices) { return slices; });
  EXPECT_GT(copy.scaled(), 6);
  auto plain = testing::load_model(reference_path(GetParam()), {});
  auto scaled = testing::load_model(path, {});
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  ASSERT_TRUE(scaled.ok()) << scaled.status().message();
  const TokenId tokens[] = {1, 17, 400, 3, 3, 211, 99};
  const auto expected = (*plain)->compute(0, tokens);
  const auto got = (*scaled)->compute(0, tokens);
  ASSERT_TRUE(expected.ok() && got.ok());
  ASSERT_EQ(got->values.size(), expected->values.size());
  for (std::size_t i = 0; i < got->values.size(); ++i)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(got->values[i]),
              std::bit_cast<std::uint32_t>(expected->values[i]))
        << "at " << i;
}

TEST_P(WeightScale, OfAnotherShapeIsRefused) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("scaled.gguf");
  const ScaledCopy copy(reference_path(GetParam()), path,
                        [](std::size_t slices) { return slices + 1; });
  EXPECT_GT(copy.scaled(), 0);
  const auto model = testing::load_model(path, {});
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.status().message().find(".scale' has shape"), std::string::npos)
      << model.status().message();
}

// Dense, with biases, and with experts.
INSTANTIATE_TEST_SUITE_P(Models, WeightScale, ::testing::Values("llama", "qwen2", "mixtral"));

}  // namespace
}  // namespace strata
