#include "text/tokenizer/bpe.h"

#include "base/printable.h"
#include "base/utf8.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/escaped_space.h"

namespace strata {
namespace {

constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";
constexpr std::size_t kMaxMerges = std::size_t{1} << 24;

}  // namespace

BpeModel::BpeModel(const PreTokenizer& rules, Splitter splitter, const Vocabulary& vocabulary)
    : rules_(rules), splitter_(std::move(splitter)), vocabulary_(vocabulary) {}

Result<std::unique_ptr<const TextModel>> BpeModel::create(const Metadata& metadata,
                                                          const PreTokenizer& rules,
                                                          Vocabulary& vocabulary) {
  STRATA_ASSIGN(Splitter splitter, Splitter::create(rules.stages));
  std::unique_ptr<BpeModel> model(new BpeModel(rules, std::move(splitter), vocabulary));
  model->index_tokens();
  STRATA_TRY(model->read_merges(metadata, vocabulary));
  return std::unique_ptr<const TextModel>(std::move(model));
}

// Control tokens are left out: ordinary text never becomes one, whatever the merges say.
void BpeModel::index_tokens() {
  const auto add_kind = [&](auto accepts) {
    for (TokenId id = 0; id < vocabulary_.size(); ++id) {
      const Token& token = vocabulary_.tokens[id];
      if (!accepts(token) || token.text.empty()) continue;
      // A byte-level token that its alphabet does not spell cannot come out of merging bytes.
      if (rules_.byte_level && !spelled_bytes(token.text)) continue;
      symbols_.insert(rules_.byte_level ? token.bytes : token.text, id);
    }
  };
  add_kind([](const Token& token) { return token.is_ordinary(); });
  add_kind([](const Token& token) { return token.kind == TokenKind::kUserDefined; });
  byte_tokens_ = byte_tokens(vocabulary_);
  if (!rules_.byte_level) return;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const std::int32_t symbol = intern({&c, 1});
    if (vocabulary_.contains(symbol)) byte_tokens_[byte] = symbol;
  }
}

std::int32_t BpeModel::intern(std::string_view bytes) {
  if (const std::int32_t known = symbols_.find(bytes); known != TextTable::kNone) return known;
  owned_.emplace_back(bytes);
  const std::size_t id = vocabulary_.tokens.size() + owned_.size() - 1;
  return symbols_.insert(owned_.back(), static_cast<std::int32_t>(id));
}

Status BpeModel::read_merges(const Metadata& metadata, Vocabulary& vocabulary) {
  STRATA_ASSIGN(const MetadataArray* array, metadata.get_array(kMergesKey));
  const auto lines = array->as_strings();
  if (!lines.ok()) return lines.status().with_context(kMergesKey);
  if (lines.value().size() > kMaxMerges)
    return unsupported("key `{}` holds {} merges; the limit is {}", kMergesKey,
                       lines.value().size(), kMaxMerges);
  std::size_t unusable = 0;
  for (std::size_t rank = 0; rank < lines.value().size(); ++rank) {
    const std::string_view line = lines.value()[rank];
    // A half may itself be spelled with a space, but not start with the separator.
    const std::size_t space = line.find(' ', 1);
    if (space == line.npos || space + 1 == line.size() || line.size() > 2 * 4096)
      return corrupt("key `{}`, line {}: `{}` is not two symbols with a space between them",
                     kMergesKey, rank, printable(line, 64));
    std::optional<std::string> left(line.substr(0, space));
    std::optional<std::string> right(line.substr(space + 1));
    if (rules_.byte_level) {
      left = spelled_bytes(*left);
      right = spelled_bytes(*right);
    }
    if (!left || !right) {
      ++unusable;
      continue;
    }
    merges_.insert(intern(*left), intern(*right),
                   {static_cast<std::uint32_t>(rank), intern(*left + *right)});
  }
  if (unusable > 0)
    vocabulary.warnings.push_back(
        fmt::format("{} of {} lines of `{}` are spelled outside the byte alphabet and never apply",
                    unusable, lines.value().size(), kMergesKey));
  return {};
}

Status BpeModel::encode(std::string_view text, bool /*starts_segment*/, EncodeScratch& scratch,
                        std::vector<TokenId>& out) const {
  std::string escaped;
  if (rules_.escape_spaces) text = escaped = escape_spaces(text);
  STRATA_TRY(splitter_.split(text, scratch.pieces));
  for (const std::string_view piece : scratch.pieces) {
    if (scratch.cache.append(piece, out)) continue;
    const std::size_t before = out.size();
    STRATA_TRY(encode_piece(piece, scratch.merger, out));
    scratch.cache.insert(piece, std::span(out).subspan(before));
  }
  return {};
}

// Vocabularies of characters have tokens for runs of newlines, but no merges that lead to them.
bool BpeModel::is_looked_up_whole(std::string_view piece) const {
  if (rules_.ignore_merges) return true;
  return !rules_.byte_level && piece.find_first_not_of('\n') == piece.npos;
}

Status BpeModel::encode_piece(std::string_view piece, Merger& merger,
                              std::vector<TokenId>& out) const {
  if (is_looked_up_whole(piece)) {
    const std::int32_t whole = symbols_.find(piece);
    if (vocabulary_.contains(whole)) {
      out.push_back(whole);
      return {};
    }
  }
  merger.clear();
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t bytes = rules_.byte_level ? 1 : utf8_step(piece.substr(at));
    merger.add({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(bytes),
                symbols_.find(piece.substr(at, bytes))});
    at += bytes;
  }
  merger.merge(
      [&](const Symbol& left, const Symbol& right) { return merges_.find(left.id, right.id); });
  Status status;
  merger.for_each([&](const Symbol& symbol) {
    if (vocabulary_.contains(symbol.id))
      out.push_back(symbol.id);
    else if (status.ok())
      status = append_bytes(piece.substr(symbol.start, symbol.length), out);
  });
  return status;
}

Status BpeModel::append_bytes(std::string_view bytes, std::vector<TokenId>& out) const {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    const TokenId known = byte_tokens_[byte];
    const TokenId id = known != kNoToken ? known : vocabulary_.unknown_text_token();
    if (id == kNoToken)
      return invalid_argument("the text holds byte 0x{:02x}, for which the vocabulary has no token",
                              byte);
    out.push_back(id);
  }
  return {};
}

}  // namespace strata
