#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "base/printable.h"
#include "gguf/splits.h"
#include "hub/repository.h"
#include "hub/stores.h"

namespace strata {
namespace {

constexpr std::size_t kMostPathsShown = 10;

// How well a query names a model; the least is the best.
enum class Match { kFile, kWhole, kEnd, kFolder, kUnquantized, kBeginning };

std::string with_slashes(std::string name) {
  std::ranges::replace(name, ':', '/');
  return "/" + lower_case(name) + "/";
}

// Takes the quantization after a colon off `wanted`; false where `name` has another.
bool take_quantization(std::string& wanted, std::string_view name) {
  const std::size_t colon = wanted.rfind(':');
  if (colon == std::string::npos) return true;
  if (!has_word(name, std::string_view(wanted).substr(colon + 1))) return false;
  wanted.resize(colon);
  return true;
}

std::optional<Match> full_match(const StoredModel& model, const std::string& query) {
  if (const auto part = parse_split_name(query)) {
    const auto own = parse_split_name(model.path);
    if (!own || own->parts != part->parts) return std::nullopt;
  }
  if (with_slashes(model.path).ends_with(with_slashes(query)) && is_gguf(query))
    return Match::kFile;
  std::string wanted = lower_case(model_stem(query));
  const std::string name = lower_case(model.name);
  if (name == wanted || name == wanted + ":latest") return Match::kWhole;
  const std::string parts = with_slashes(name);
  if (parts.ends_with(with_slashes(wanted))) return Match::kEnd;
  if (!take_quantization(wanted, name) || wanted.empty() ||
      parts.find(with_slashes(wanted)) == std::string::npos)
    return std::nullopt;
  return Match::kFolder;
}

// "-Q4_K_M", ".f16" and the like.
bool is_quantization(std::string_view ending) {
  if (ending.empty() || std::string_view("-._").find(ending.front()) == std::string_view::npos)
    return false;
  std::string_view word = ending.substr(1);
  for (const std::string_view whole : {"f16", "f32", "bf16", "mxfp4", "nvfp4"})
    if (word == whole) return true;
  if (word.starts_with('i') || word.starts_with('t')) word.remove_prefix(1);
  return word.size() > 1 && word[0] == 'q' && word[1] >= '1' && word[1] <= '9' &&
         word.find_first_of("-.") == std::string_view::npos;
}

std::optional<Match> short_match(const StoredModel& model, const std::string& query) {
  const std::string name = lower_case(model.name);
  std::string wanted = lower_case(query);
  if (is_gguf(wanted) || !take_quantization(wanted, name) || wanted.empty()) return std::nullopt;
  const std::string parts = with_slashes(name);
  const std::string beginning = "/" + wanted;
  const std::size_t at = parts.rfind(beginning);
  const std::size_t last = parts.rfind('/', parts.size() - 2);
  if (at == std::string::npos || at + beginning.size() <= last + 1) return std::nullopt;
  const std::string_view rest = std::string_view(parts).substr(at + beginning.size());
  return is_quantization(rest.substr(0, rest.size() - 1)) ? Match::kUnquantized : Match::kBeginning;
}

std::string real_path(const std::string& path) {
  std::error_code error;
  const auto real = std::filesystem::canonical(path, error);
  return error ? path : real.string();
}

}  // namespace

Result<StoredModel> choose_model(std::span<const StoredModel> models, std::string_view query,
                                 Naming naming) {
  if (query.empty()) return invalid_argument("the name of the model is empty");
  using Rank = std::pair<bool, Match>;  // Strata's own come first
  std::optional<Rank> best;
  std::vector<const StoredModel*> chosen;
  for (const StoredModel& model : models) {
    const auto how = naming == Naming::kFull ? full_match(model, std::string(query))
                                             : short_match(model, std::string(query));
    if (!how) continue;
    const Rank rank{model.store != StoreKind::kStrata, *how};
    if (best && rank > *best) continue;
    if (best != rank) chosen.clear();
    best = rank;
    chosen.push_back(&model);
  }
  if (chosen.empty())
    return not_found(
        "{}: there is no such file, and no model of that name in a cache; strata ls "
        "lists those, strata pull fetches more",
        printable(query, 200));
  std::set<std::string> paths;
  std::string names;
  for (const StoredModel* model : chosen)
    if (paths.insert(real_path(model->path)).second && paths.size() <= kMostPathsShown)
      names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", printable(model->name, 150),
                           to_string(model->store));
  if (paths.size() == 1) return *chosen.front();
  return invalid_argument("'{}' names {} models: {}{}; say more of the name, or give a path",
                          printable(query, 200), paths.size(), names,
                          paths.size() > kMostPathsShown ? ", ..." : "");
}

std::optional<StoredModel> model_at(std::span<const StoredModel> models, const std::string& path) {
  const std::string real = real_path(path);
  const auto part = parse_split_name(real);
  for (const StoredModel& model : models) {
    const std::string own = real_path(model.path);
    const auto own_part = parse_split_name(own);
    const bool sibling =
        part && own_part && part->prefix == own_part->prefix && part->parts == own_part->parts;
    if (own == real || sibling) return model;
  }
  return std::nullopt;
}

}  // namespace strata
