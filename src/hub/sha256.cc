#include "hub/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/ascii.h"
#include "base/file.h"

namespace strata {

Sha256::Sha256() : context_(EVP_MD_CTX_new()) { restart(); }

void Sha256::restart() { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }

void Sha256::update(std::span<const std::uint8_t> bytes) {
  EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

std::string Sha256::hex() {
  std::array<std::uint8_t, 32> digest{};
  EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr);
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

Result<std::string> file_sha256(const std::string& path) {
  STRATA_ASSIGN(const File file, File::open(path));
  std::vector<std::uint8_t> buffer(kMiB);
  Sha256 digest;
  for (Bytes at = 0; at < file.size(); at += buffer.size()) {
    buffer.resize(std::min<Bytes>(kMiB, file.size() - at));
    STRATA_TRY(file.read_exactly(at, buffer));
    digest.update(buffer);
  }
  return digest.hex();
}

Result<std::string> sampled_sha256(const std::string& path) {
  constexpr Bytes kPiece = 64 * kKiB;
  constexpr Bytes kPieces = 64;
  STRATA_ASSIGN(const File file, File::open(path));
  const Bytes size = file.size();
  const std::string text = fmt::format("{}\n", size);
  Sha256 digest;
  digest.update({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  std::vector<std::uint8_t> buffer;
  for (Bytes i = 0; i <= kPieces && i * kPiece < size; ++i) {
    const bool whole = size <= kPieces * kPiece;
    const Bytes at = whole ? i * kPiece : (size - kPiece) / kPieces * i;
    buffer.resize(std::min(kPiece, size - at));
    STRATA_TRY(file.read_exactly(at, buffer));
    digest.update(buffer);
  }
  return digest.hex();
}

std::string as_sha256(std::string_view text) {
  const bool valid = text.size() == 64 &&
                     text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  return valid ? lower_case(text) : std::string();
}

}  // namespace strata
