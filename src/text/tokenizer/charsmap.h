// SentencePiece's normalization rules, `tokenizer.ggml.precompiled_charsmap`: byte strings and what
// replaces them. The strings are keys of a double-array trie, as the darts-clone library writes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "gguf/metadata.h"

namespace strata {

class Charsmap {
 public:
  // Without rules.
  Charsmap() = default;
  // kCorrupt where the sizes do not fit together, kUnsupported where a replacement is longer than
  // 1024 bytes; Unicode's own have 33.
  static Result<Charsmap> read(const MetadataArray& array);

  struct Match {
    std::size_t bytes = 0;  // of the text; 0 where no rule applies
    std::string_view replacement;
  };
  // The rule with the longest key that `text` starts with. kCorrupt where the trie leads outside
  // itself. Keys longer than 256 bytes, which no writer makes, are not found.
  Result<Match> match(std::string_view text) const;

 private:
  std::vector<std::uint32_t> units_;
  std::string replacements_;  // each ends with a zero byte
};

}  // namespace strata
