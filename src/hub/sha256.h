// SHA-256 (FIPS 180-4) of bytes as they come.
#pragma once

#include <openssl/evp.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace strata {

class Sha256 {
 public:
  Sha256();

  void restart();
  void update(std::span<const std::uint8_t> bytes);
  std::string hex();  // ends it; restart() begins anew

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

// Of the whole file.
Result<std::string> file_sha256(const std::string& path);

// A SHA-256 that tells files of models apart without reading all of them: of the size, the head and
// bytes from all over the file.
Result<std::string> sampled_sha256(const std::string& path);

// `text` in lower case where it is 64 hexadecimal digits, else empty.
std::string as_sha256(std::string_view text);

}  // namespace strata
