#include "engine/pooling.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/bert.h"

namespace strata {
namespace {

// By the file's number.
constexpr std::array<std::string_view, 5> kNames = {"none", "mean", "cls", "last", "rank"};
static_assert(static_cast<std::int64_t>(Pooling::kRank) == kRankPooling);

Status normalize_row(std::vector<float>& row) {
  double squares = 0;
  for (const float x : row) squares += double{x} * x;
  if (squares == 0) return internal_error("an embedding of zeros cannot be normalised");
  const double norm = std::sqrt(squares);
  for (float& x : row) x = static_cast<float>(x / norm);
  return {};
}

}  // namespace

std::string_view to_string(Pooling pooling) { return kNames[static_cast<std::size_t>(pooling)]; }

std::optional<Pooling> pooling_by_name(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end() || name == to_string(Pooling::kRank)) return std::nullopt;
  return static_cast<Pooling>(found - kNames.begin());
}

Result<std::optional<Pooling>> read_pooling(const ModelManifest& manifest) {
  constexpr std::string_view kKey = "pooling_type";
  if (!manifest.has(kKey)) return std::optional<Pooling>();
  STRATA_ASSIGN(const std::int64_t type, manifest.integer(kKey, 0, kRankPooling));
  return std::optional(static_cast<Pooling>(type));
}

std::vector<Position> pooled_positions(Pooling pooling, Position length) {
  if (pooling == Pooling::kFirst || pooling == Pooling::kRank) return {0};
  if (pooling == Pooling::kLast) return {length - 1};
  std::vector<Position> all;
  for (Position p = 0; p < length; ++p) all.push_back(p);
  return all;
}

void Pooler::add(std::span<const float> row) {
  ++rows_;
  if (pooling_ != Pooling::kMean) {
    kept_.emplace_back(row.begin(), row.end());
    return;
  }
  sum_.resize(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) sum_[i] += row[i];
}

Result<std::vector<std::vector<float>>> Pooler::finish(bool normalize) {
  if (rows_ == 0) return internal_error("nothing to pool");
  if (pooling_ == Pooling::kMean) {
    std::vector<float>& mean = kept_.emplace_back();
    for (const double sum : sum_)
      mean.push_back(static_cast<float>(sum / static_cast<double>(rows_)));
  }
  for (std::vector<float>& row : kept_) {
    if (!std::ranges::all_of(row, [](float x) { return std::isfinite(x); }))
      return internal_error("the model computed what is no finite number");
    if (normalize) STRATA_TRY(normalize_row(row));
  }
  return std::move(kept_);
}

}  // namespace strata
