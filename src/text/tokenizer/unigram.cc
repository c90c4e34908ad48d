#include "text/tokenizer/unigram.h"

#include <algorithm>
#include <limits>

#include "base/utf8.h"
#include "text/tokenizer/escaped_space.h"

namespace strata {
namespace {

constexpr std::string_view kRulesKey = "tokenizer.ggml.precompiled_charsmap";
constexpr std::string_view kReplacement = "\xef\xbf\xbd";
constexpr double kUnknownPenalty = 10;
constexpr std::size_t kMaxNormalizedBytes = std::size_t{1} << 30;
constexpr std::size_t kMaxGrowth = 64;  // the rules of Unicode's NFKC reach 11

}  // namespace

UnigramModel::UnigramModel(const Vocabulary& vocabulary)
    : vocabulary_(vocabulary),
      tokens_(ordinary_tokens(vocabulary, &Token::text)),
      fallback_(vocabulary) {
  float lowest = std::numeric_limits<float>::max();
  for (const Token& token : vocabulary.tokens) {
    if (!token.is_ordinary()) continue;
    cutter_.add(token.text);
    lowest = std::min(lowest, token.score);
  }
  unknown_score_ = lowest - kUnknownPenalty;
}

Result<std::unique_ptr<const TextModel>> UnigramModel::create(const Metadata& metadata,
                                                              const Vocabulary& vocabulary,
                                                              bool add_space_prefix) {
  std::unique_ptr<UnigramModel> model(new UnigramModel(vocabulary));
  model->add_space_prefix_ = add_space_prefix;
  STRATA_ASSIGN(const std::optional<bool> merge_spaces,
                metadata.optional_bool("tokenizer.ggml.remove_extra_whitespaces"));
  model->merge_spaces_ = merge_spaces.value_or(false);
  if (metadata.contains(kRulesKey)) {
    STRATA_ASSIGN(const MetadataArray* array, metadata.get_array(kRulesKey));
    Result<Charsmap> rules = Charsmap::read(*array);
    if (!rules.ok()) return rules.status().with_context(fmt::format("key `{}`", kRulesKey));
    model->rules_ = std::move(rules).value();
  }
  return std::unique_ptr<const TextModel>(std::move(model));
}

Result<Charsmap::Match> UnigramModel::normalize_prefix(std::string_view text) const {
  Result<Charsmap::Match> match = rules_.match(text);
  if (!match.ok()) return match.status().with_context(fmt::format("key `{}`", kRulesKey));
  if (match.value().bytes > 0) return match;
  const Utf8Prefix prefix = utf8_prefix(text);
  if (prefix.kind != Utf8Prefix::Kind::kCharacter) return Charsmap::Match{1, kReplacement};
  return Charsmap::Match{prefix.bytes, text.substr(0, prefix.bytes)};
}

Result<std::string> UnigramModel::normalize(std::string_view text) const {
  const std::size_t limit = std::min(kMaxNormalizedBytes, kMaxGrowth * text.size());
  std::string out;
  bool drops_spaces = merge_spaces_;
  while (!text.empty()) {
    STRATA_ASSIGN(const Charsmap::Match next, normalize_prefix(text));
    text.remove_prefix(next.bytes);
    std::string_view normal = next.replacement;
    while (drops_spaces && normal.starts_with(' ')) normal.remove_prefix(1);
    if (normal.empty()) continue;
    if (out.empty() && add_space_prefix_) out += kEscapedSpace;
    out += escape_spaces(normal);
    drops_spaces = merge_spaces_ && normal.ends_with(' ');
    if (out.size() > limit)
      return resource_exhausted("normalized by `{}`, the text has more than {} bytes", kRulesKey,
                                limit);
  }
  while (merge_spaces_ && out.ends_with(kEscapedSpace))
    out.resize(out.size() - kEscapedSpace.size());
  return out;
}

Status UnigramModel::encode(std::string_view text, bool /*starts_segment*/, EncodeScratch& scratch,
                            std::vector<TokenId>& out) const {
  STRATA_ASSIGN(const std::string normal, normalize(text));
  const std::size_t first = out.size();
  for (std::string_view rest = normal; !rest.empty();) {
    const std::string_view segment = rest.substr(0, cutter_.next_cut(rest));
    rest.remove_prefix(segment.size());
    const std::size_t before = out.size();
    if (!scratch.cache.append(segment, out)) {
      STRATA_TRY(encode_segment(segment, scratch.paths, out));
      scratch.cache.insert(segment, std::span(out).subspan(before));
    }
    // Unknown characters in a row are one unknown token.
    if (before > first && out[before] == fallback_.unknown() && out[before - 1] == out[before])
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(before));
  }
  return {};
}

// Viterbi's algorithm, forwards over the starts of tokens.
void UnigramModel::find_best_paths(std::string_view text, std::vector<BestPath>& paths) const {
  paths.assign(text.size() + 1, {-std::numeric_limits<double>::infinity(), 0, kNoToken});
  paths[0].score = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const std::size_t character = utf8_step(rest);
    bool is_covered = false;
    const auto extend = [&](std::size_t bytes, TokenId id, double score) {
      const double total = paths[at].score + score;
      BestPath& best = paths[at + bytes];
      if (total > best.score) best = {total, static_cast<std::uint32_t>(at), id};
    };
    tokens_.for_each_prefix(rest, [&](std::size_t bytes, TokenId id) {
      is_covered = is_covered || bytes == character;
      extend(bytes, id, vocabulary_.tokens[id].score);
    });
    if (!is_covered) extend(character, kNoToken, unknown_score_);
    at += character;
  }
}

Status UnigramModel::encode_segment(std::string_view text, std::vector<BestPath>& paths,
                                    std::vector<TokenId>& out) const {
  find_best_paths(text, paths);
  // Turns the links round, so that the path is walked from the front.
  std::size_t next = 0;
  for (std::size_t end = text.size(); end > 0;) {
    const std::size_t start = paths[end].start;
    paths[end].start = static_cast<std::uint32_t>(next);
    next = end;
    end = start;
  }
  const std::size_t first = out.size();
  for (std::size_t start = 0; next > 0;) {
    const BestPath& path = paths[next];
    if (path.last != kNoToken) {
      out.push_back(path.last);
    } else {
      STRATA_TRY(fallback_.append(text.substr(start, next - start), out));
      if (out.size() >= first + 2 && out.back() == fallback_.unknown() &&
          out[out.size() - 2] == out.back())
        out.pop_back();
    }
    start = next;
    next = path.start;
  }
  return {};
}

}  // namespace strata
