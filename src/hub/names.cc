#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/printable.h"
#include "hub/ascii.h"
#include "hub/repository.h"
#include "hub/stores.h"

namespace strata {
namespace {

constexpr std::size_t kMostShown = 10;

// How well a query names a model; the least is the best.
enum class Match { kWhole, kEnd, kFolder };

std::string with_slashes(std::string name) {
  std::ranges::replace(name, ':', '/');
  return "/" + lower_case(name) + "/";
}

std::optional<Match> match(const StoredModel& model, std::string_view query) {
  std::string wanted = lower_case(model_stem(std::string(query)));
  const std::string name = lower_case(model.name);
  if (name == wanted || name == wanted + ":latest") return Match::kWhole;
  const std::string parts = with_slashes(name);
  if (parts.ends_with(with_slashes(wanted))) return Match::kEnd;
  const std::size_t colon = wanted.rfind(':');
  if (colon != std::string::npos) {
    if (!has_word(name, std::string_view(wanted).substr(colon + 1))) return std::nullopt;
    wanted.resize(colon);
  }
  if (wanted.empty() || parts.find(with_slashes(wanted)) == std::string::npos) return std::nullopt;
  return Match::kFolder;
}

std::string real_path(const StoredModel& model) {
  std::error_code error;
  const auto path = std::filesystem::canonical(model.path, error);
  return error ? model.path : path.string();
}

}  // namespace

Result<StoredModel> choose_model(std::span<const StoredModel> models, std::string_view query) {
  using Rank = std::pair<bool, Match>;  // Strata's own come first
  std::optional<Rank> best;
  std::vector<const StoredModel*> chosen;
  for (const StoredModel& model : models) {
    const auto how = match(model, query);
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
    if (paths.insert(real_path(*model)).second && paths.size() <= kMostShown)
      names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", printable(model->name, 150),
                           to_string(model->store));
  if (paths.size() == 1) return *chosen.front();
  return invalid_argument("'{}' names {} models: {}{}; say more of the name, or give a path",
                          printable(query, 200), paths.size(), names,
                          paths.size() > kMostShown ? ", ..." : "");
}

}  // namespace strata
