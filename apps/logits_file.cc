#include "logits_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/printable.h"

namespace strata::apps {
namespace {

constexpr std::array<char, 8> kMagic = {'S', 'T', 'R', 'L', 'O', 'G', 'I', 'T'};
constexpr std::int32_t kFileVersion = 1;
constexpr Bytes kHeaderBytes = 64;

struct RawHeader {
  std::array<char, 8> magic = kMagic;
  std::int32_t version = kFileVersion;
  LogitsFileHeader header;
  std::array<std::uint8_t, kHeaderBytes - 28> reserved{};
};
static_assert(sizeof(RawHeader) == kHeaderBytes);

template <typename T>
std::span<const std::uint8_t> bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()};
}

Bytes token_bytes(const LogitsFileHeader& h) {
  return static_cast<Bytes>(h.chunks) * static_cast<Bytes>(h.chunk_tokens) * sizeof(TokenId);
}

Bytes row_bytes(const LogitsFileHeader& h) {
  return static_cast<Bytes>(h.vocabulary) * sizeof(float);
}

Status check(const LogitsFileHeader& h, const File& file) {
  const std::string path = printable(file.path());
  if (h.vocabulary < 1 || h.chunk_tokens < 2 || h.chunks < 1 || h.rows_per_chunk < 1 ||
      h.rows_per_chunk >= h.chunk_tokens)
    return corrupt("{}: its header names impossible sizes", path);
  const auto rows = static_cast<Bytes>(h.chunks) * static_cast<Bytes>(h.rows_per_chunk);
  const auto logits = checked_mul<Bytes>(rows, row_bytes(h));
  const auto total =
      logits ? checked_add<Bytes>(*logits, kHeaderBytes + token_bytes(h)) : std::nullopt;
  if (!total || file.size() != *total)
    return corrupt("{}: the file has {} bytes, not what its header says; save it again", path,
                   file.size());
  return {};
}

}  // namespace

Result<LogitsWriter> LogitsWriter::create(const std::string& path, const LogitsFileHeader& header,
                                          std::span<const TokenId> tokens) {
  STRATA_ASSIGN(File file, create_output(path));
  const RawHeader raw{.header = header};
  STRATA_TRY(file.write(bytes_of(std::span(&raw, 1))));
  STRATA_TRY(file.write(bytes_of(tokens)));
  return LogitsWriter(std::move(file), header);
}

Status LogitsWriter::add(std::span<const float> row) {
  ++rows_;
  return file_.write(bytes_of(row));
}

Status LogitsWriter::finish() {
  const auto expected = std::int64_t{header_.chunks} * header_.rows_per_chunk;
  if (rows_ != expected) return internal_error("{} of {} rows were saved", rows_, expected);
  return file_.close();
}

Result<LogitsReader> LogitsReader::open(const std::string& path) {
  STRATA_ASSIGN(File file, File::open(path));
  RawHeader raw;
  std::array<std::uint8_t, kHeaderBytes> bytes{};
  if (file.size() < kHeaderBytes) return corrupt("{}: no saved logits", printable(path));
  STRATA_TRY(file.read_exactly(0, bytes));
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.magic != kMagic || raw.version != kFileVersion)
    return corrupt("{}: no saved logits of version {}", printable(path), kFileVersion);
  STRATA_TRY(check(raw.header, file));
  return LogitsReader(std::move(file), raw.header);
}

Result<std::vector<TokenId>> LogitsReader::tokens() const {
  std::vector<TokenId> out(token_bytes(header_) / sizeof(TokenId));
  STRATA_TRY(file_.read_exactly(
      kHeaderBytes, {reinterpret_cast<std::uint8_t*>(out.data()), token_bytes(header_)}));
  return out;
}

Status LogitsReader::row(std::int64_t index, std::span<float> out) const {
  const Bytes offset =
      kHeaderBytes + token_bytes(header_) + static_cast<Bytes>(index) * row_bytes(header_);
  STRATA_TRY(
      file_.read_exactly(offset, {reinterpret_cast<std::uint8_t*>(out.data()), out.size_bytes()}));
  if (!std::ranges::all_of(out, [](float x) { return std::isfinite(x); }))
    return corrupt("{}: row {} holds numbers that are not finite", printable(file_.path()), index);
  return {};
}

}  // namespace strata::apps
