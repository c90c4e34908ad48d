#include "hub/repository.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "base/ascii.h"
#include "base/printable.h"
#include "gguf/splits.h"
#include "hub/json.h"
#include "hub/sha256.h"
#include "hub/source.h"

namespace strata {
namespace {

namespace json = boost::json;

constexpr std::string_view kUsualQuantization = "Q4_K_M";
constexpr std::size_t kMostShown = 20;
constexpr std::uint32_t kMostParts = 1024;

HubFile read_file_entry(const json::object& entry) {
  HubFile file;
  file.path = text_of(entry, "rfilename");
  file.bytes = natural_of(entry, "size").value_or(0);
  if (const json::object* lfs = object_of(entry, "lfs")) {
    file.sha256 = as_sha256(text_of(*lfs, "sha256"));
    file.bytes = natural_of(*lfs, "size").value_or(file.bytes);
  }
  return file;
}

bool is_later_part(const std::string& path) {
  const auto name = parse_split_name(path);
  return name && name->part != 1;
}

bool selects(std::string_view selector, const HubFile& file) {
  const std::string stem = model_stem(file.path);
  return selector.empty() || file.path == selector || stem == selector ||
         file.path.ends_with(fmt::format("/{}", selector)) || has_word(stem, selector);
}

std::string shown(const std::vector<const HubFile*>& models) {
  std::string out;
  for (std::size_t i = 0; i < std::min(models.size(), kMostShown); ++i)
    out += fmt::format("{}{}", i == 0 ? "" : ", ", printable(model_stem(models[i]->path), 100));
  if (models.size() > kMostShown) out += fmt::format(" and {} more", models.size() - kMostShown);
  return out;
}

Result<std::vector<HubFile>> all_parts(const HubListing& listing, const HubFile& first) {
  const auto name = parse_split_name(first.path);
  if (!name) return std::vector{first};
  if (name->parts > kMostParts)
    return resource_exhausted("{} has {} parts, where at most {} are fetched",
                              printable(name->prefix, 100), name->parts, kMostParts);
  std::vector<HubFile> parts;
  for (std::uint32_t part = 1; part <= name->parts; ++part) {
    const std::string path = split_path(name->prefix, part, name->parts);
    const auto found = std::ranges::find(listing.files, path, &HubFile::path);
    if (found == listing.files.end())
      return not_found("the repository lacks part {} of {}: {}", part, name->parts,
                       printable(path, 200));
    parts.push_back(*found);
  }
  return parts;
}

}  // namespace

Result<HubListing> parse_hub_listing(std::string_view text) {
  STRATA_ASSIGN(const json::object root, parse_json_object(text));
  HubListing listing;
  listing.commit = text_of(root, "sha");
  if (!is_safe_name(listing.commit)) return corrupt("the hub's answer names no commit (`sha`)");
  const json::array* entries = array_of(root, "siblings");
  if (entries == nullptr) return corrupt("the hub's answer lists no files (`siblings`)");
  for (const json::value& value : *entries) {
    const json::object* entry = value.if_object();
    if (entry == nullptr) return corrupt("the hub's list of files holds what is no file");
    HubFile file = read_file_entry(*entry);
    if (!is_gguf(file.path)) continue;
    if (!is_safe_path(file.path))
      return corrupt("the repository has a file with the name '{}', which is refused",
                     printable(file.path, 200));
    listing.files.push_back(std::move(file));
  }
  return listing;
}

Result<std::vector<HubFile>> choose_hub_files(const HubListing& listing,
                                              std::string_view selector) {
  std::vector<const HubFile*> models, chosen;
  for (const HubFile& file : listing.files)
    if (!is_later_part(file.path) && (!is_companion(file.path) || file.path == selector))
      models.push_back(&file);
  if (models.empty()) return not_found("the repository holds no GGUF model");
  const auto choose = [&](std::string_view by) {
    chosen.clear();
    for (const HubFile* file : models)
      if (selects(by, *file)) chosen.push_back(file);
  };
  choose(selector);
  if (selector.empty() && chosen.size() > 1) choose(kUsualQuantization);
  if (chosen.size() == 1) return all_parts(listing, *chosen.front());
  if (chosen.empty() && !selector.empty())
    return not_found("the repository has no model '{}'; it has: {}", printable(selector, 100),
                     shown(models));
  return invalid_argument("say which model after a colon; the repository has: {}",
                          shown(chosen.empty() ? models : chosen));
}

bool has_word(std::string_view text, std::string_view word) {
  const std::string in = lower_case(text), wanted = lower_case(word);
  if (wanted.empty()) return false;
  for (std::size_t at = 0; (at = in.find(wanted, at)) != std::string::npos; ++at) {
    const std::size_t end = at + wanted.size();
    const bool starts = at == 0 || std::string_view("-._/ ").find(in[at - 1]) != std::string::npos;
    const bool ends =
        end == in.size() || std::string_view("-./ ").find(in[end]) != std::string::npos;
    if (starts && ends) return true;
  }
  return false;
}

bool is_gguf(std::string_view path) { return lower_case(path).ends_with(".gguf"); }

std::string model_stem(const std::string& path) {
  if (const auto name = parse_split_name(path)) return name->prefix;
  return is_gguf(path) ? path.substr(0, path.size() - 5) : path;
}

bool is_companion(std::string_view path) {
  const std::string name = lower_case(path.substr(path.rfind('/') + 1));
  return name.starts_with("mmproj") || has_word(name, "mmproj") || has_word(name, "imatrix");
}

}  // namespace strata
