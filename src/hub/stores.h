// The caches in which models lie: Strata's own, and those of other programs, read in place.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"

namespace strata {

enum class StoreKind {
  kStrata,       // folders of files
  kHuggingFace,  // models--org--repo/snapshots/<commit>/, of which refs/main is the newest
  kOllama,       // manifests/<host>/<namespace>/<model>/<tag> and blobs/sha256-<digest>
  kLmStudio,     // publisher/repository/file
  kLlamaCpp,     // files
};
std::string_view to_string(StoreKind kind);

struct Store {
  StoreKind kind;
  std::string folder;
};

struct StoredModel {
  std::string name;  // "org/repo/file" without .gguf, and without the number of a part where all
                     // are there and nothing else has that name; Ollama's "name:tag"
  std::string path;  // of a split model the first part that is there
  StoreKind store;
  Bytes bytes;               // of all parts
  std::int64_t modified_at;  // in seconds since 1970
};

struct StoredModels {
  std::vector<StoredModel> models;    // by name within each store, in the stores' order
  std::vector<std::string> warnings;  // about what was left out
};

// What is there; folders that are not are empty. Links to folders are not followed, and of each
// store at most 100,000 entries are looked at.
StoredModels list_models(std::span<const Store> stores);

// The digest of the one model layer of an Ollama manifest, 64 hexadecimal digits.
Result<std::string> parse_ollama_manifest(std::string_view json);

enum class Naming {
  // The file, the whole name, the last parts of it (after a slash), or the folder, then with
  // :quantization where that holds several.
  kFull,
  // The beginning of the name; best all but the quantization at its end.
  kShort,
};

// The model that `query` names, whatever its case. Strata's own models come before others.
// kNotFound: none; kInvalidArgument: several, with their names.
Result<StoredModel> choose_model(std::span<const StoredModel> models, std::string_view query,
                                 Naming naming);

// The model to which the file at `path` belongs, however the path is written.
std::optional<StoredModel> model_at(std::span<const StoredModel> models, const std::string& path);

// Whether the bytes of a file are those that came.
enum class Condition { kGood, kDamaged, kUnknown };
std::string_view to_string(Condition condition);

// Of all parts, against the SHA-256 that Strata recorded or that the name of the file gives, as
// Ollama and Hugging Face's tools have it. Reads all of them.
Result<Condition> verify(const StoredModel& model);

// Removes every part of a model in Strata's cache, and the folders that this empties.
Status remove_model(const StoredModel& model, const std::string& folder);

}  // namespace strata
