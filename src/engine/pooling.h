// From the hidden states of a text's tokens to its embedding, or to a pair's score.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "gguf/manifest.h"

namespace strata {

enum class Pooling : std::uint8_t {
  kNone,   // every token keeps its own
  kMean,   // of all tokens
  kFirst,  // of the first token, [CLS]
  kLast,
  kRank,  // a pair's score, computed at the first token
};
std::string_view to_string(Pooling pooling);  // "none", "mean", "cls", "last", "rank"
// The inverse, of those that a model's embeddings leave a choice of: "rank" is none.
std::optional<Pooling> pooling_by_name(std::string_view name);

// What the file says; nothing where it is silent.
Result<std::optional<Pooling>> read_pooling(const ModelManifest& manifest);
// For a file that is silent.
constexpr Pooling default_pooling(bool causal) { return causal ? Pooling::kLast : Pooling::kMean; }

// The positions of a text of `length` tokens whose hidden states pooling reads.
std::vector<Position> pooled_positions(Pooling pooling, Position length);

// Makes one text's embedding out of those positions' rows: one row, or with kNone one per token.
class Pooler {
 public:
  explicit Pooler(Pooling pooling) : pooling_(pooling) {}

  // In order of position.
  void add(std::span<const float> row);

  // With `normalize` every row is divided by its Euclidean norm. Fails where an element is no
  // finite number, or a row to be normalised is all zeros. The pooler is spent afterwards.
  Result<std::vector<std::vector<float>>> finish(bool normalize);

 private:
  const Pooling pooling_;
  std::int64_t rows_ = 0;
  std::vector<double> sum_;  // of kMean
  std::vector<std::vector<float>> kept_;
};

}  // namespace strata
