#include "model_stores.h"

#include <cstdlib>
#include <filesystem>

#include "base/printable.h"
#include "say.h"

namespace strata::apps {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHubPrefix = "hf:";

}  // namespace

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::vector<Store> stores_of(const std::function<std::string(const char*)>& variable) {
  std::vector<Store> stores;
  const auto add = [&](StoreKind kind, const fs::path& folder) {
    if (!folder.empty()) stores.push_back({kind, folder.string()});
  };
  const auto below = [](const fs::path& folder, const char* inside) {
    return folder.empty() ? fs::path() : folder / inside;
  };
  const auto either = [](const fs::path& first, const fs::path& second) {
    return first.empty() ? second : first;
  };
  const fs::path home = variable("HOME");
  const fs::path xdg = variable("XDG_CACHE_HOME");
  const fs::path cache = xdg.is_absolute() ? xdg : below(home, ".cache");
  const fs::path strata = either(variable("STRATA_CACHE"), below(cache, "strata"));
  const fs::path hf_home = either(variable("HF_HOME"), below(cache, "huggingface"));
  add(StoreKind::kStrata, below(strata, "models"));
  add(StoreKind::kHuggingFace, either(variable("HF_HUB_CACHE"), below(hf_home, "hub")));
  add(StoreKind::kOllama, either(variable("OLLAMA_MODELS"), below(home, ".ollama/models")));
  add(StoreKind::kOllama, "/usr/share/ollama/.ollama/models");
  add(StoreKind::kLmStudio, below(home, ".lmstudio/models"));
  add(StoreKind::kLmStudio, below(home, ".cache/lm-studio/models"));
  add(StoreKind::kLlamaCpp, either(variable("LLAMA_CACHE"), below(cache, "llama.cpp")));
  return stores;
}

std::vector<Store> user_stores() { return stores_of(environment); }

Result<std::string> own_folder(const std::vector<Store>& stores) {
  for (const Store& store : stores)
    if (store.kind == StoreKind::kStrata) return store.folder;
  return invalid_argument("there is no place for models: set HOME or STRATA_CACHE");
}

Result<std::string> find_model(const std::string& name) {
  std::error_code error;
  const fs::file_status there = fs::status(name, error);
  if (fs::exists(there) && !fs::is_directory(there)) return name;
  const StoredModels stored = list_models(user_stores());
  const bool of_hub = name.starts_with(kHubPrefix);
  const std::string query = of_hub ? name.substr(kHubPrefix.size()) : name;
  auto chosen = choose_model(stored.models, query, Naming::kFull);
  if (chosen.status().code() == StatusCode::kNotFound && !fs::exists(there)) {
    chosen = choose_model(stored.models, query, Naming::kShort);
    if (chosen.ok()) say("note: {} means {}\n", printable(name), printable(chosen->name));
  }
  if (!chosen.ok() && fs::exists(there)) return name;  // opening it says what is wrong
  STRATA_TRY(chosen.status());
  return chosen->path;
}

}  // namespace strata::apps
