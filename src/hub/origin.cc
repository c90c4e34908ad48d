#include "hub/origin.h"

#include <unistd.h>

#include "base/ascii.h"
#include "base/file.h"
#include "hub/sha256.h"
#include "hub/small_file.h"

namespace strata {
namespace {

constexpr Bytes kMostOriginBytes = 4096;

}  // namespace

std::string origin_path(const std::string& file) { return file + ".source"; }

Origin read_origin(const std::string& file) {
  const std::string text = read_small_file(origin_path(file), kMostOriginBytes);
  const auto lines = split(text, '\n');
  if (lines.size() < 3 || lines.size() > 4 || !lines.back().empty() ||
      text.find('\r') != std::string::npos)
    return {};
  return {std::string(lines[0]), std::string(lines[1]), as_sha256(lines[2])};
}

Result<std::string> model_digest(const std::string& file) {
  if (std::string known = read_origin(file).sha256; !known.empty()) return known;
  // Blobs of other programs are called so.
  constexpr std::string_view kBlob = "sha256-";
  const std::string_view name = std::string_view(file).substr(file.rfind('/') + 1);
  if (name.starts_with(kBlob))
    if (std::string known = as_sha256(name.substr(kBlob.size())); !known.empty()) return known;
  return sampled_sha256(file);
}

Status write_origin(const std::string& file, const Origin& origin) {
  const std::string text =
      fmt::format("{}\n{}\n{}\n", origin.source, origin.validator, origin.sha256);
  const std::string path = origin_path(file);
  ::unlink(path.c_str());  // a link would be written through
  STRATA_ASSIGN(File out, File::create_new(path));
  STRATA_TRY(out.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
  return out.close();
}

}  // namespace strata
