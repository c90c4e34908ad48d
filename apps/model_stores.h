// Where this user's models lie, and the names that stand for them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "hub/stores.h"

namespace strata::apps {

// The value of a variable of the environment; empty where it is not set.
std::string environment(const char* name);

// The folders of every known cache, Strata's first, as the variables say that the programs honour:
// STRATA_CACHE, XDG_CACHE_HOME, HF_HUB_CACHE, HF_HOME, OLLAMA_MODELS, LLAMA_CACHE, HOME.
std::vector<Store> stores_of(const std::function<std::string(const char*)>& variable);
std::vector<Store> user_stores();

// Strata's own among them.
Result<std::string> own_folder(const std::vector<Store>& stores);

// The path of the file that a command's MODEL names: a path, or else a model of a cache.
Result<std::string> find_model(const std::string& name);

}  // namespace strata::apps
