// What `tokenizer.ggml.pre` names: how a family of byte-pair vocabularies cuts text into pieces
// before merging. The names and rules are those of llama.cpp and of the models' own tokenizers.
#pragma once

#include <span>
#include <string_view>

namespace strata {

// A stage isolates what its pattern matches: matches and the gaps between them become pieces, and
// each piece is the whole subject of the next stage. \s stands for Unicode's White_Space.
struct SplitStage {
  std::string_view pattern;            // PCRE2 syntax, Unicode properties on
  bool threes_from_the_right = false;  // cut each match into three characters, counted from its end
};

struct PreTokenizer {
  std::string_view name;  // of the rule family, for messages
  std::span<const SplitStage> stages;
  bool ignore_merges = false;   // a piece that is a token as a whole is not merged
  bool add_bos = false;         // where the file does not say
  bool always_add_bos = false;  // whatever the file says
  bool byte_level = true;       // false: symbols are characters, with <0xXX> tokens for the rest
  bool escape_spaces = false;   // spaces are written U+2581 in the vocabulary
};

// nullptr for a name nobody has defined.
const PreTokenizer* find_pre_tokenizer(std::string_view name);
const PreTokenizer& default_pre_tokenizer();

// Every name that find_pre_tokenizer knows.
std::span<const std::string_view> pre_tokenizer_names();

}  // namespace strata
