#include "hub/stores.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "base/ascii.h"
#include "base/printable.h"
#include "gguf/splits.h"
#include "hub/json.h"
#include "hub/origin.h"
#include "hub/repository.h"
#include "hub/sha256.h"
#include "hub/small_file.h"
#include "hub/source.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t kMostEntries = 100'000;
constexpr int kDeepest = 8;
constexpr Bytes kMostManifestBytes = kMiB;
constexpr std::string_view kModelLayer = "application/vnd.ollama.image.model";
constexpr std::uint32_t kMostParts = 1024;
constexpr std::string_view kSuffix = ".gguf";
constexpr std::string_view kBlobPrefix = "sha256-";  // of Ollama's files

// Where the parts of the model at `path` belong, all or the first of them, and that path last.
std::vector<std::string> part_paths(const std::string& path) {
  std::vector<std::string> paths;
  if (const auto name = parse_split_name(path))
    for (std::uint32_t part = 1; part <= std::min(name->parts, kMostParts); ++part)
      if (part != name->part) paths.push_back(split_path(name->prefix, part, name->parts));
  paths.push_back(path);
  return paths;
}

class Lister {
 public:
  explicit Lister(const Store& store) : store_(store), root_(store.folder) {}

  StoredModels run() {
    switch (store_.kind) {
      case StoreKind::kStrata:
      case StoreKind::kLmStudio:
      case StoreKind::kLlamaCpp: list_tree(root_, ""); break;
      case StoreKind::kHuggingFace: list_hugging_face(); break;
      case StoreKind::kOllama: list_ollama(); break;
    }
    std::ranges::sort(found_.models, {}, &StoredModel::name);
    return std::move(found_);
  }

 private:
  // Calls `take` with every file below `folder`, with its path inside it.
  template <typename Take>
  void walk(const fs::path& folder, Take take) {
    std::error_code error;
    fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied,
                                        error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
      if (++entries_ > kMostEntries) {
        found_.warnings.push_back(fmt::format("{}: has more than {} entries; the rest is left out",
                                              printable(store_.folder), kMostEntries));
        return;
      }
      if (at.depth() >= kDeepest || at->path().filename().string().starts_with('.'))
        at.disable_recursion_pending();
      else if (std::error_code type; at->is_regular_file(type))
        take(at->path(), at->path().lexically_relative(folder).string());
    }
  }

  // Every model below `folder`, named with `prefix`.
  void list_tree(const fs::path& folder, const std::string& prefix) {
    std::set<std::string> files;
    walk(folder, [&](const fs::path& path, const std::string& inside) {
      if (store_.kind == StoreKind::kStrata && inside.ends_with(".partial"))
        found_.warnings.push_back(
            fmt::format("{} is an unfinished download: pull the model again to go on, or delete it",
                        printable(path.string())));
      if (inside.ends_with(kSuffix) && !is_companion(inside)) files.insert(inside);
    });
    for (const std::string& file : files) {
      const auto part = parse_split_name(file);
      if (part && part->part != 1 && files.contains(split_path(part->prefix, 1, part->parts)))
        continue;
      const std::string whole = file.substr(0, file.size() - kSuffix.size());
      const bool complete = !part || has_all_parts(files, *part);
      const bool short_name = !part || (complete && is_sole(files, part->prefix));
      if (!complete)
        found_.warnings.push_back(
            fmt::format("{} is one of {} parts that are not all there: pull the model again, or "
                        "remove it",
                        printable((folder / file).string()), part->parts));
      add(prefix + (short_name ? model_stem(file) : whole), folder / file);
    }
  }

  // Whether the split model `stem` shares its name with no other.
  static bool is_sole(const std::set<std::string>& files, const std::string& stem) {
    const std::string first = stem + "-00001-of-";
    const auto other = files.upper_bound(*files.lower_bound(first));
    return !files.contains(fmt::format("{}{}", stem, kSuffix)) &&
           (other == files.end() || !other->starts_with(first));
  }

  static bool has_all_parts(const std::set<std::string>& files, const SplitName& name) {
    for (std::uint32_t part = 1; part <= name.parts; ++part)
      if (!files.contains(split_path(name.prefix, part, name.parts))) return false;
    return true;
  }

  void add(std::string name, const fs::path& path) {
    std::error_code error;
    const auto time = fs::last_write_time(path, error);
    if (error) return;
    const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
    StoredModel model{std::move(name), path.string(), store_.kind, 0,
                      std::chrono::duration_cast<std::chrono::seconds>(since).count()};
    for (const std::string& part : part_paths(model.path))
      if (const auto bytes = fs::file_size(part, error); !error) model.bytes += bytes;
    found_.models.push_back(std::move(model));
  }

  std::vector<fs::path> folders_in(const fs::path& folder) {
    std::vector<fs::path> folders;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      if (++entries_ > kMostEntries) break;
      if (std::error_code type; at->is_directory(type)) folders.push_back(at->path());
    }
    std::ranges::sort(folders);
    return folders;
  }

  void list_hugging_face() {
    constexpr std::string_view kPrefix = "models--";
    for (const fs::path& repository : folders_in(root_)) {
      std::string name = repository.filename().string();
      if (!name.starts_with(kPrefix)) continue;
      name.erase(0, kPrefix.size());
      if (const std::size_t at = name.find("--"); at != std::string::npos) name.replace(at, 2, "/");
      const std::string newest(
          trimmed(read_small_file((repository / "refs" / "main").string(), 200)));
      const std::size_t first = found_.models.size();
      if (is_safe_name(newest)) list_tree(repository / "snapshots" / newest, name + "/");
      for (const fs::path& snapshot : folders_in(repository / "snapshots"))
        if (snapshot.filename() != newest) list_tree(snapshot, name + "/");
      keep_first_of_each_name(first);
    }
  }

  // Of the models from index `first` on.
  void keep_first_of_each_name(std::size_t first) {
    const auto begin = found_.models.begin() + static_cast<std::ptrdiff_t>(first);
    std::stable_sort(begin, found_.models.end(),
                     [](const auto& a, const auto& b) { return a.name < b.name; });
    const auto same = [](const auto& a, const auto& b) { return a.name == b.name; };
    found_.models.erase(std::unique(begin, found_.models.end(), same), found_.models.end());
  }

  void list_ollama() {
    walk(root_ / "manifests", [&](const fs::path& path, const std::string& inside) {
      auto parts = split(inside, '/');
      if (parts.size() < 3) return;
      if (parts.front() == "registry.ollama.ai") parts.erase(parts.begin());
      if (parts.size() == 3 && parts.front() == "library") parts.erase(parts.begin());
      const std::string tag(parts.back());
      parts.pop_back();
      const auto digest = parse_ollama_manifest(read_small_file(path.string(), kMostManifestBytes));
      if (digest.ok())
        add(fmt::format("{}:{}", fmt::join(parts, "/"), tag),
            root_ / "blobs" / fmt::format("{}{}", kBlobPrefix, *digest));
      else
        found_.warnings.push_back(
            fmt::format("{}: {}", printable(path.string()), digest.status().message()));
    });
  }

  const Store& store_;
  fs::path root_;
  StoredModels found_;
  std::size_t entries_ = 0;
};

}  // namespace

std::string_view to_string(StoreKind kind) {
  switch (kind) {
    case StoreKind::kStrata: return "Strata";
    case StoreKind::kHuggingFace: return "Hugging Face";
    case StoreKind::kOllama: return "Ollama";
    case StoreKind::kLmStudio: return "LM Studio";
    case StoreKind::kLlamaCpp: return "llama.cpp";
  }
  return "unknown";
}

StoredModels list_models(std::span<const Store> stores) {
  StoredModels all;
  for (const Store& store : stores) {
    StoredModels found = Lister(store).run();
    std::ranges::move(found.models, std::back_inserter(all.models));
    std::ranges::move(found.warnings, std::back_inserter(all.warnings));
  }
  return all;
}

Result<std::string> parse_ollama_manifest(std::string_view text) {
  STRATA_ASSIGN(const json::object root, parse_json_object(text));
  const json::array* layers = array_of(root, "layers");
  if (layers == nullptr) return corrupt("the manifest lists no `layers`");
  std::string digest;
  for (const json::value& value : *layers) {
    const json::object* layer = value.if_object();
    if (layer == nullptr || text_of(*layer, "mediaType") != kModelLayer) continue;
    if (!digest.empty()) return unsupported("the manifest has several model layers");
    const std::string whole = text_of(*layer, "digest");
    if (whole.starts_with("sha256:")) digest = as_sha256(whole.substr(7));
    if (digest.empty())
      return corrupt("the manifest's model has the digest '{}'", printable(whole, 100));
  }
  if (digest.empty()) return not_found("the manifest has no model layer");
  return digest;
}

std::string_view to_string(Condition condition) {
  switch (condition) {
    case Condition::kGood: return "good";
    case Condition::kDamaged: return "damaged";
    case Condition::kUnknown: return "unknown";
  }
  return "unknown";
}

Result<Condition> verify(const StoredModel& model) {
  bool all_known = true;
  for (const std::string& path : part_paths(model.path)) {
    std::error_code error;
    std::string name = fs::canonical(path, error).filename().string();
    if (name.starts_with(kBlobPrefix)) name.erase(0, kBlobPrefix.size());
    std::string wanted = as_sha256(name);
    if (wanted.empty()) wanted = read_origin(path).sha256;
    if (wanted.empty()) {
      all_known = false;
      continue;
    }
    STRATA_ASSIGN(const std::string found, file_sha256(path));
    if (found != wanted) return Condition::kDamaged;
  }
  return all_known ? Condition::kGood : Condition::kUnknown;
}

Status remove_model(const StoredModel& model, const std::string& folder) {
  for (const std::string& path : part_paths(model.path))
    for (const std::string& file : {origin_path(path), path}) {
      std::error_code error;
      fs::remove(file, error);
      if (error) return io_error("{}: cannot be removed: {}", printable(file), error.message());
    }
  for (fs::path above = fs::path(model.path).parent_path();
       above != fs::path(folder) && ::rmdir(above.c_str()) == 0;)
    above = above.parent_path();
  return {};
}

}  // namespace strata
