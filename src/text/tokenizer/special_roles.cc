#include "text/tokenizer/special_roles.h"

#include <algorithm>
#include <cctype>

#include "base/printable.h"
#include "text/tokenizer/hash_tables.h"

namespace strata {
namespace {

struct Role {
  TokenId SpecialIds::*id;
  std::string_view text;
};

// The first text that a vocabulary has fills the role.
constexpr Role kRoles[] = {
    {&SpecialIds::eot, "<|eot_id|>"},
    {&SpecialIds::eot, "<|im_end|>"},
    {&SpecialIds::eot, "<end_of_turn>"},
    {&SpecialIds::eot, "<turn|>"},
    {&SpecialIds::eot, "<|end|>"},
    {&SpecialIds::eot, "<end_of_utterance>"},
    {&SpecialIds::eot, "<EOT>"},
    {&SpecialIds::eot, "_<EOT>"},
    {&SpecialIds::eot, "[EOT]"},
    {&SpecialIds::eot, "<|endoftext|>"},
    {&SpecialIds::eot, "<|end_of_text|>"},
    {&SpecialIds::eot, "<｜end▁of▁sentence｜>"},
    {&SpecialIds::eom, "<|eom_id|>"},
    {&SpecialIds::fim_prefix, "<|fim_prefix|>"},
    {&SpecialIds::fim_prefix, "<fim-prefix>"},
    {&SpecialIds::fim_prefix, "<fim_prefix>"},
    {&SpecialIds::fim_prefix, "<｜fim▁begin｜>"},
    {&SpecialIds::fim_prefix, "<PRE>"},
    {&SpecialIds::fim_prefix, "▁<PRE>"},
    {&SpecialIds::fim_prefix, "<|code_prefix|>"},
    {&SpecialIds::fim_prefix, "<|prefix|>"},
    {&SpecialIds::fim_suffix, "<|fim_suffix|>"},
    {&SpecialIds::fim_suffix, "<fim-suffix>"},
    {&SpecialIds::fim_suffix, "<fim_suffix>"},
    {&SpecialIds::fim_suffix, "<｜fim▁hole｜>"},
    {&SpecialIds::fim_suffix, "<SUF>"},
    {&SpecialIds::fim_suffix, "▁<SUF>"},
    {&SpecialIds::fim_suffix, "<|code_suffix|>"},
    {&SpecialIds::fim_suffix, "<|suffix|>"},
    {&SpecialIds::fim_middle, "<|fim_middle|>"},
    {&SpecialIds::fim_middle, "<fim-middle>"},
    {&SpecialIds::fim_middle, "<fim_middle>"},
    {&SpecialIds::fim_middle, "<｜fim▁end｜>"},
    {&SpecialIds::fim_middle, "<MID>"},
    {&SpecialIds::fim_middle, "▁<MID>"},
    {&SpecialIds::fim_middle, "<|code_middle|>"},
    {&SpecialIds::fim_middle, "<|middle|>"},
    {&SpecialIds::fim_pad, "<|fim_pad|>"},
    {&SpecialIds::fim_pad, "<fim-pad>"},
    {&SpecialIds::fim_pad, "<fim_pad>"},
    {&SpecialIds::fim_pad, "<PAD>"},
    {&SpecialIds::fim_pad, "[PAD]"},
    {&SpecialIds::fim_repository, "<|fim_repo|>"},
    {&SpecialIds::fim_repository, "<|repo_name|>"},
    {&SpecialIds::fim_repository, "<fim-repo>"},
    {&SpecialIds::fim_repository, "<REPO>"},
    {&SpecialIds::fim_repository, "<reponame>"},
    {&SpecialIds::fim_separator, "<|file_sep|>"},
};

constexpr std::string_view kEndTexts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<eos>",
    "<turn|>",
    "[e~[",
    "<end_of_utterance>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
};

// What GPT-OSS's channel format writes into its answers, which whoever reads them must see.
constexpr std::string_view kShownTexts[] = {"<|channel|>", "<|message|>", "<|start|>",
                                            "<|constrain|>"};

class RoleAssigner {
 public:
  explicit RoleAssigner(Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    for (TokenId id = 0; id < vocabulary.size(); ++id)
      by_text_.insert(vocabulary.tokens[id].text, id);
  }

  TokenId find(std::string_view text) const { return by_text_.find(text); }

  Token* token(std::string_view text) {
    const TokenId id = find(text);
    return id == kNoToken ? nullptr : &vocabulary_.tokens[id];
  }

  void fill_roles() {
    const SpecialIds named = vocabulary_.special;
    for (const Role& role : kRoles) {
      TokenId& id = vocabulary_.special.*role.id;
      if (named.*role.id != kNoToken || id != kNoToken) continue;
      id = find(role.text);
      if (id != kNoToken) make_control(id);
    }
  }

  void mark_ends() {
    for (const std::string_view text : kEndTexts)
      if (const TokenId id = find(text); id != kNoToken && is_end_here(text)) {
        make_control(id);
        mark_end(id);
      }
    const SpecialIds& ids = vocabulary_.special;
    for (const TokenId id :
         {ids.eos, ids.eot, ids.eom, ids.fim_pad, ids.fim_repository, ids.fim_separator})
      mark_end(id);
    // In channel formats <|end|> closes one message of several; others close the answer.
    if (Token* end = token("<|end|>"); end != nullptr && has_channels()) {
      end->ends_generation = false;
      end->always_shown = true;
      if (vocabulary_.special.eot == find("<|end|>")) vocabulary_.special.eot = kNoToken;
    }
  }

 private:
  bool has(std::string_view text) const { return find(text) != kNoToken; }

  bool has_channels() const {
    return (has("<|return|>") && (has("<|call|>") || has("<|calls|>"))) ||
           (has("<|flush|>") && (has("<|call|>") || has("<|calls|>")));
  }

  // Gemma has </s> for struck-out HTML text, PLaMo as an ordinary piece.
  bool is_end_here(std::string_view text) {
    if (text != "</s>") return true;
    if (has("<|tool_response>") || has("<|plamo:eos|>")) return false;
    return token(text)->kind != TokenKind::kUserDefined;
  }

  void mark_end(TokenId id) {
    if (id != kNoToken) vocabulary_.tokens[id].ends_generation = true;
  }

  void make_control(TokenId id) {
    Token& token = vocabulary_.tokens[id];
    if (token.kind == TokenKind::kControl) return;
    vocabulary_.warnings.push_back(fmt::format(
        "token {} `{}` is taken as a control token, though the file does not mark it as one", id,
        printable(token.text, 64)));
    token.kind = TokenKind::kControl;
  }

  Vocabulary& vocabulary_;
  TextTable by_text_;
};

bool is_special(const Token& token) {
  return token.kind == TokenKind::kControl || token.kind == TokenKind::kUserDefined ||
         token.kind == TokenKind::kUnknown;
}

// Files do not carry these flags; they come with the model family.
void set_strip_flags(std::string_view model_name, std::string_view pre_tokenizer,
                     RoleAssigner& roles, Vocabulary& vocabulary) {
  std::string name(model_name);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (pre_tokenizer.starts_with("jina-v2-")) {
    if (Token* mask = roles.token("<mask>")) mask->strip_left = true;
  } else if (name.find("phi-3") != name.npos || name.find("phi3") != name.npos) {
    for (Token& token : vocabulary.tokens) token.strip_right = is_special(token);
    if (Token* end = roles.token("</s>")) end->strip_right = true;
    for (const std::string_view text : {"<unk>", "<s>", "<|endoftext|>"})
      if (Token* token = roles.token(text)) token->strip_right = false;
  } else if (name.find("modern-bert") != name.npos) {
    if (Token* mask = roles.token("[MASK]")) mask->strip_left = true;
  }
}

}  // namespace

void assign_special_roles(std::string_view model_name, std::string_view pre_tokenizer,
                          Vocabulary& vocabulary) {
  RoleAssigner roles(vocabulary);
  roles.fill_roles();
  roles.mark_ends();
  for (const std::string_view text : kShownTexts)
    if (Token* token = roles.token(text)) token->always_shown = true;
  set_strip_flags(model_name, pre_tokenizer, roles, vocabulary);
}

}  // namespace strata
