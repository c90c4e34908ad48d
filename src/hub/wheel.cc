#include "hub/wheel.h"

#include <zip.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/ascii.h"
#include "base/file.h"
#include "base/memory_ledger.h"
#include "base/printable.h"
#include "hub/source.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr zip_int64_t kMostFiles = 100'000;

struct Close {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using Archive = std::unique_ptr<zip_t, Close>;
using Member = std::unique_ptr<zip_file_t, Close>;

Status copy_member(zip_t* archive, const zip_stat_t& member, const std::string& path,
                   const PullHooks& hooks) {
  const Member in(zip_fopen_index(archive, member.index, 0));
  if (in == nullptr) return corrupt("{}: {}", printable(path), zip_strerror(archive));
  STRATA_ASSIGN(File out, File::create(path));
  const std::string name = fs::path(path).filename().string();
  std::vector<std::uint8_t> buffer(kMiB);
  while (true) {
    const zip_int64_t got = zip_fread(in.get(), buffer.data(), buffer.size());
    if (got < 0) return corrupt("{}: {}", printable(name), zip_file_strerror(in.get()));
    if (got == 0) break;
    if (static_cast<Bytes>(got) > member.size - out.size())
      return corrupt("{}: is longer than the archive says", printable(name));
    STRATA_TRY(out.write({buffer.data(), static_cast<std::size_t>(got)}));
    hooks.progress(name, out.size(), member.size);
  }
  if (out.size() != member.size)
    return corrupt("{}: is shorter than the archive says", printable(name));
  STRATA_TRY(out.sync());
  return out.close();
}

}  // namespace

Result<std::vector<std::string>> extract_models(const std::string& archive,
                                                const std::string& folder, const PullHooks& hooks) {
  int code = 0;
  const Archive zip(zip_open(archive.c_str(), ZIP_RDONLY, &code));
  if (zip == nullptr) return corrupt("{}: is no zip archive", printable(archive));
  const zip_int64_t entries = zip_get_num_entries(zip.get(), 0);
  if (entries > kMostFiles)
    return resource_exhausted("{}: has {} entries, where at most {} are read", printable(archive),
                              entries, kMostFiles);
  std::vector<std::string> names;
  for (zip_int64_t i = 0; i < entries; ++i) {
    zip_stat_t member{};
    constexpr auto kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE;
    if (zip_stat_index(zip.get(), static_cast<zip_uint64_t>(i), 0, &member) != 0 ||
        (member.valid & kNeeded) != kNeeded)
      return corrupt("{}: {}", printable(archive), zip_strerror(zip.get()));
    const std::string_view path = member.name;
    const std::string name(path.substr(path.rfind('/') + 1));
    if (!lower_case(name).ends_with(".gguf")) continue;
    if (!is_safe_name(name) || std::ranges::find(names, name) != names.end())
      return corrupt("{}: holds a file '{}', which is refused", printable(archive),
                     printable(path, 200));
    std::error_code error;
    const auto space = fs::space(folder, error);
    if (!error && space.available < member.size)
      return resource_exhausted(
          "{}: {} are missing but the disk has {} left; make room and pull "
          "again",
          printable(name), human_bytes(member.size), human_bytes(space.available));
    STRATA_TRY(copy_member(zip.get(), member, fmt::format("{}/{}", folder, name), hooks));
    names.push_back(name);
  }
  if (names.empty())
    return not_found("{} holds no GGUF file, so it is no model",
                     printable(fs::path(archive).filename().string()));
  return names;
}

}  // namespace strata
