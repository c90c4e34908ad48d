// Logits saved for comparison: a text's tokens in chunks of one length, and f32 rows for the scored
// positions of each chunk. Little-endian, 64 bytes of header.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "base/units.h"

namespace strata::apps {

struct LogitsFileHeader {
  std::int32_t vocabulary = 0;
  std::int32_t chunk_tokens = 0;
  std::int32_t chunks = 0;
  std::int32_t rows_per_chunk = 0;
  bool operator==(const LogitsFileHeader&) const = default;
};

// One thread; rows are written in order.
class LogitsWriter {
 public:
  static Result<LogitsWriter> create(const std::string& path, const LogitsFileHeader& header,
                                     std::span<const TokenId> tokens);
  Status add(std::span<const float> row);
  // Fails, too, where rows are missing.
  Status finish();

 private:
  LogitsWriter(File file, const LogitsFileHeader& header)
      : file_(std::move(file)), header_(header) {}

  File file_;
  LogitsFileHeader header_;
  std::int64_t rows_ = 0;
};

class LogitsReader {
 public:
  // Checks the size against the header.
  static Result<LogitsReader> open(const std::string& path);
  const LogitsFileHeader& header() const { return header_; }
  Result<std::vector<TokenId>> tokens() const;
  // Fails on numbers that are not finite.
  Status row(std::int64_t index, std::span<float> out) const;

 private:
  LogitsReader(File file, const LogitsFileHeader& header)
      : file_(std::move(file)), header_(header) {}

  File file_;
  LogitsFileHeader header_;
};

}  // namespace strata::apps
