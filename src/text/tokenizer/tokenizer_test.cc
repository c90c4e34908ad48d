#include "text/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/processor_time.h"
#include "text/tokenizer/test_support.h"

namespace strata {
namespace {

using testing::byte_vocabulary;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::spm_vocabulary;
using testing::VocabularyFile;

std::unique_ptr<const Tokenizer> make(const VocabularyFile& file) {
  auto tokenizer = file.create();
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return std::move(tokenizer).value();
}

std::vector<std::string> texts(const Tokenizer& tokenizer, std::span<const TextSpan> spans) {
  const auto ids = tokenizer.encode(spans);
  EXPECT_TRUE(ids.ok()) << ids.status().message();
  std::vector<std::string> out;
  for (const TokenId id : ids.value()) out.emplace_back(tokenizer.token_text(id));
  return out;
}

std::vector<std::string> texts(const Tokenizer& tokenizer, std::string_view text,
                               bool parse_special = true) {
  const TextSpan span{text, parse_special};
  return texts(tokenizer, std::span(&span, 1));
}

TEST(Bpe, MergesTheLowestRankFirstAndFromTheLeft) {
  VocabularyFile file = byte_vocabulary();
  file.add_merge("b", "c");
  file.add_merge("a", "b");
  file.add_merge("a", "a");
  EXPECT_THAT(texts(*make(file), "abc"), ElementsAre("a", "bc"));
  EXPECT_THAT(texts(*make(file), "ab"), ElementsAre("ab"));
  EXPECT_THAT(texts(*make(file), "aaa"), ElementsAre("aa", "a"));
}

TEST(Bpe, MergesPassThroughStringsThatAreNoTokens) {
  VocabularyFile file = byte_vocabulary();
  file.merges = {"a b", "ab c"};
  file.add("abc");
  EXPECT_THAT(texts(*make(file), "abc"), ElementsAre("abc"));
  EXPECT_THAT(texts(*make(file), "abd"), ElementsAre("a", "b", "d"));
}

TEST(Bpe, FamiliesThatIgnoreMergesTakeWholePieces) {
  VocabularyFile file = byte_vocabulary();
  file.add("abc");  // no merge leads there
  EXPECT_THAT(texts(*make(file), "abc"), ElementsAre("a", "b", "c"));
  file.pre = "llama-bpe";
  EXPECT_THAT(texts(*make(file), "abc"), ElementsAre("abc"));
}

TEST(Bpe, SplitsSpecialTokensLongestFirst) {
  VocabularyFile file = byte_vocabulary();
  file.add_control("<|a|>");
  file.add_control("<|a|><|b|>");
  file.add_user_defined("<|");
  const auto tokenizer = make(file);
  EXPECT_THAT(texts(*tokenizer, "x<|a|><|b|><|a|>y<|"),
              ElementsAre("x", "<|a|><|b|>", "<|a|>", "y", "<|"));
  EXPECT_THAT(texts(*tokenizer, "<|a", true), ElementsAre("<|", "a"));
}

TEST(Bpe, CharacterVocabulariesEscapeSpacesAndFallBackToBytes) {
  VocabularyFile file;
  file.model = "gemma4";
  file.pre = "";
  file.add_control("<bos>");
  file.set("tokenizer.ggml.bos_token_id", std::uint64_t{0});
  for (int byte = 0; byte < 256; ++byte)
    file.add(fmt::format("<0x{:02X}>", byte), TokenKind::kByte);
  for (const std::string_view text : {"a", "b", "\xe2\x96\x81", "\n\n"}) file.add(text);
  file.add_merge("\xe2\x96\x81", "a");
  const auto tokenizer = make(file);
  EXPECT_THAT(tokenizer->warnings(), IsEmpty());
  EXPECT_THAT(texts(*tokenizer, "b a\n\n\xc3\xbc\xff"),
              ElementsAre("<bos>", "b",
                          "\xe2\x96\x81"
                          "a",
                          "\n\n", "<0xC3>", "<0xBC>", "<0xFF>"));
  const auto ids = tokenizer->encode("b a\n\n\xc3\xbc\xff", true).value();
  EXPECT_EQ(tokenizer->decode(ids).value(), "b a\n\n\xc3\xbc\xff");
}

TEST(Bpe, Gemma4sBosIsAddedWhateverTheFileSays) {
  VocabularyFile file;
  file.model = "gemma4";
  file.add_control("<bos>");
  file.add("a");
  file.set("tokenizer.ggml.add_bos_token", false);
  EXPECT_THAT(make(file)->warnings(), IsEmpty());  // there is none to add
  file.set("tokenizer.ggml.bos_token_id", std::uint64_t{0});
  EXPECT_THAT(texts(*make(file), "a"), ElementsAre("<bos>", "a"));
  ASSERT_EQ(make(file)->warnings().size(), 1u);
  EXPECT_THAT(make(file)->warnings()[0], HasSubstr("add_bos_token"));
}

TEST(Spm, MergesByScoreAndFallsBackToBytes) {
  VocabularyFile file = spm_vocabulary();
  file.set("tokenizer.ggml.add_bos_token", false);
  for (const std::string_view text : {"a", "b", "c"}) file.add(text, TokenKind::kNormal, -100);
  file.add("ab", TokenKind::kNormal, -3);
  file.add("bc", TokenKind::kNormal, -2);
  file.add(
      "\xe2\x96\x81"
      "a",
      TokenKind::kNormal, -1);
  const auto tokenizer = make(file);
  EXPECT_THAT(texts(*tokenizer, "abc"), ElementsAre("\xe2\x96\x81"
                                                    "a",
                                                    "bc"));
  EXPECT_THAT(texts(*tokenizer, "c\xc3\xbc"), ElementsAre("\xe2\x96\x81", "c", "<0xC3>", "<0xBC>"));
}

TEST(Spm, CuttingAtSpacesChangesNothingWhereATokenSpansThem) {
  VocabularyFile file = spm_vocabulary();
  file.set("tokenizer.ggml.add_bos_token", false);
  for (const std::string_view text : {"a", "b"}) file.add(text, TokenKind::kNormal, -100);
  file.add("a\xe2\x96\x81", TokenKind::kNormal, -2);
  file.add(
      "a\xe2\x96\x81"
      "b",
      TokenKind::kNormal, -1);
  EXPECT_THAT(texts(*make(file), "a b a b"), ElementsAre("\xe2\x96\x81",
                                                         "a\xe2\x96\x81"
                                                         "b",
                                                         "\xe2\x96\x81",
                                                         "a\xe2\x96\x81"
                                                         "b"));
}

TEST(Tokenizer, ControlTokensAreRecognisedInTrustedSpansOnly) {
  VocabularyFile file = byte_vocabulary();
  file.add_control("<|x|>");
  const auto tokenizer = make(file);
  EXPECT_THAT(texts(*tokenizer, "<|x|>", true), ElementsAre("<|x|>"));
  EXPECT_THAT(texts(*tokenizer, "<|x|>", false), ElementsAre("<", "|", "x", "|", ">"));
  // Neither may text complete what a template began, nor the reverse.
  EXPECT_THAT(texts(*tokenizer, std::vector<TextSpan>{{"<|x", true}, {"|>", false}}),
              ElementsAre("<", "|", "x", "|", ">"));
  EXPECT_THAT(texts(*tokenizer, std::vector<TextSpan>{{"<|", false}, {"x|>", true}}),
              ElementsAre("<", "|", "x", "|", ">"));
  // A template's own pieces are one text.
  EXPECT_THAT(texts(*tokenizer, std::vector<TextSpan>{{"<|x", true}, {"", false}, {"|>", true}}),
              ElementsAre("<|x|>"));
  EXPECT_THAT(texts(*tokenizer, std::vector<TextSpan>{{"<|x|>", true}, {"<|x|>", false}}),
              ElementsAre("<|x|>", "<", "|", "x", "|", ">"));
}

TEST(Tokenizer, SpansTokenizeAsTheOneTextTheyForm) {
  VocabularyFile file = byte_vocabulary();
  file.add_merge("a", "b");
  file.add_user_defined("[[");
  const auto tokenizer = make(file);
  EXPECT_THAT(texts(*tokenizer, std::vector<TextSpan>{{"xa", true}, {"by[", false}, {"[", true}}),
              ElementsAre("x", "ab", "y", "[["));
}

// Text must not become a control token by merging either, whatever a file's merges and scores say.
TEST(Tokenizer, MergingNeverMakesAControlToken) {
  VocabularyFile bpe = byte_vocabulary();
  bpe.merges = {"a b"};
  bpe.add_control("ab");
  EXPECT_THAT(texts(*make(bpe), "ab", false), ElementsAre("a", "b"));
  bpe.pre = "llama-bpe";
  EXPECT_THAT(texts(*make(bpe), "ab", false), ElementsAre("a", "b"));

  VocabularyFile spm = spm_vocabulary();
  spm.set("tokenizer.ggml.add_bos_token", false);
  for (const std::string_view text : {"<", "s", ">", "<s"}) spm.add(text);
  EXPECT_THAT(texts(*make(spm), "<s>", false), ElementsAre("\xe2\x96\x81", "<s", ">"));
}

TEST(Tokenizer, AnEndTokenThatAFileCallsUnknownIsNotAFallbackForText) {
  VocabularyFile file;
  file.add_control("<|endoftext|>");
  file.add("a");
  file.set("tokenizer.ggml.unknown_token_id", std::uint64_t{0});
  const auto ids = make(file)->encode("ab", false);
  ASSERT_FALSE(ids.ok());
  EXPECT_THAT(ids.status().message(), HasSubstr("byte 0x62"));
}

TEST(Tokenizer, AddsBosExactlyOnce) {
  VocabularyFile file = byte_vocabulary();
  file.pre = "llama-bpe";
  const TokenId bos = file.add_control("<|begin_of_text|>");
  file.set("tokenizer.ggml.bos_token_id", static_cast<std::uint64_t>(bos));
  const auto tokenizer = make(file);
  EXPECT_TRUE(tokenizer->add_bos());
  EXPECT_THAT(tokenizer->encode("a", true).value(), ElementsAre(bos, 'a'));
  EXPECT_THAT(tokenizer->encode("<|begin_of_text|>a", true).value(), ElementsAre(bos, 'a'));
  EXPECT_THAT(tokenizer->encode("", true).value(), ElementsAre(bos));
  EXPECT_THAT(tokenizer->encode("a", true, {.add_bos = false}).value(), ElementsAre('a'));
}

TEST(Tokenizer, UnknownAndMissingPreTokenizersAreLoudWarnings) {
  VocabularyFile file = byte_vocabulary();
  EXPECT_THAT(make(file)->warnings(), IsEmpty());
  file.pre = "nobody-has-this";
  ASSERT_FALSE(make(file)->warnings().empty());
  EXPECT_THAT(make(file)->warnings()[0], HasSubstr("nobody-has-this"));
  file.pre = "";
  ASSERT_FALSE(make(file)->warnings().empty());
  EXPECT_THAT(make(file)->warnings()[0], HasSubstr("tokenizer.ggml.pre"));
  EXPECT_THAT(texts(*make(file), "ab"), ElementsAre("a", "b"));
}

TEST(Tokenizer, StripFlagsTakeBlanksAlong) {
  VocabularyFile file = byte_vocabulary();
  file.name = "Phi-3 mini";
  file.add_control("<|user|>");
  EXPECT_THAT(texts(*make(file), "a <|user|> \n b"), ElementsAre("a", "\u0120", "<|user|>", "b"));
  file.name = "other";
  file.pre = "jina-v2-de";
  file.add_control("<mask>");
  EXPECT_THAT(texts(*make(file), "a \n<mask> b"), ElementsAre("a", "<mask>", "\u0120", "b"));
}

TEST(SpecialRoles, WellKnownTextsEndGeneration) {
  VocabularyFile file = byte_vocabulary();
  const TokenId im_end = file.add_control("<|im_end|>");
  const TokenId start = file.add_control("<|im_start|>");
  const TokenId end = file.add_control("<|endoftext|>");
  file.set("tokenizer.ggml.eos_token_id", static_cast<std::uint64_t>(end));
  const auto tokenizer = make(file);
  EXPECT_TRUE(tokenizer->is_end_of_generation(im_end));
  EXPECT_TRUE(tokenizer->is_end_of_generation(end));
  EXPECT_FALSE(tokenizer->is_end_of_generation(start));
  EXPECT_FALSE(tokenizer->is_end_of_generation('a'));
  EXPECT_FALSE(tokenizer->is_end_of_generation(-1));
  EXPECT_EQ(tokenizer->special_ids().eot, im_end);
}

TEST(SpecialRoles, ControlTextsThatAFileMarksWronglyAreControlTokens) {
  VocabularyFile file = byte_vocabulary();
  const TokenId id = file.add("<|eot_id|>");
  const auto tokenizer = make(file);
  EXPECT_EQ(tokenizer->token_kind(id), TokenKind::kControl);
  ASSERT_EQ(tokenizer->warnings().size(), 1u);
  EXPECT_THAT(tokenizer->warnings()[0], HasSubstr("<|eot_id|>"));
}

TEST(SpecialRoles, InChannelFormatsOneMessageEndsButNotTheAnswer) {
  VocabularyFile file = byte_vocabulary();
  const TokenId end = file.add_control("<|end|>");
  const TokenId channel = file.add_control("<|channel|>");
  EXPECT_TRUE(make(file)->is_end_of_generation(end));
  const TokenId call = file.add_control("<|call|>");
  const TokenId done = file.add_control("<|return|>");
  const auto tokenizer = make(file);
  EXPECT_FALSE(tokenizer->is_end_of_generation(end));
  EXPECT_TRUE(tokenizer->is_end_of_generation(call));
  EXPECT_TRUE(tokenizer->is_end_of_generation(done));
  // What splits the answer into channels is visible to whoever splits it, yet never made of text.
  EXPECT_EQ(tokenizer->token_bytes(channel), "<|channel|>");
  EXPECT_THAT(tokenizer->encode("<|end|>", false).value(), ::testing::SizeIs(7));
}

TEST(SpecialRoles, StruckOutTextInHtmlDoesNotEndGeneration) {
  VocabularyFile file = byte_vocabulary();
  const TokenId tag = file.add_user_defined("</s>");
  EXPECT_FALSE(make(file)->is_end_of_generation(tag));
}

TEST(Tokenizer, DecodesByTheOptionsAndRefusesUnknownIds) {
  VocabularyFile file = byte_vocabulary();
  const TokenId control = file.add_control("<|x|>");
  const TokenId unused = file.add("[PAD7]", TokenKind::kUnused);
  const auto tokenizer = make(file);
  const std::vector<TokenId> ids = {'a', control, unused, 'b'};
  EXPECT_EQ(tokenizer->decode(ids).value(), "ab");
  EXPECT_EQ(tokenizer->decode(ids, {.include_special = true}).value(), "a<|x|>b");
  for (const TokenId bad : {-1, tokenizer->vocabulary_size()}) {
    const auto text = tokenizer->decode(std::span(&bad, 1));
    ASSERT_FALSE(text.ok());
    EXPECT_EQ(text.status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(tokenizer->token_bytes(-1), "");
}

TEST(Tokenizer, BytesThatAreNotUtf8RoundTrip) {
  const auto bpe = make(byte_vocabulary());
  const auto spm = make(spm_vocabulary());
  std::string text;
  for (int i = 0; i < 4096; ++i) text += static_cast<char>((i * 131 + i / 256 * 7) & 0xff);
  for (const auto* tokenizer : {bpe.get(), spm.get()})
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, true).value()).value(), text);
}

TEST(Tokenizer, ThreadsShareOneTokenizer) {
  VocabularyFile file = byte_vocabulary();
  file.add_merge("a", "b");
  const auto tokenizer = make(file);
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "ab abc, ";
  const auto expected = tokenizer->encode(text, false).value();
  std::vector<std::thread> threads;
  std::vector<int> same(4, 0);
  for (std::size_t t = 0; t < same.size(); ++t)
    threads.emplace_back([&, t] { same[t] = tokenizer->encode(text, false).value() == expected; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(same, Each(1));
}

// One piece or segment of a megabyte; anything quadratic would need hours.
constexpr std::size_t kLongRun = STRATA_SLOW ? 1 << 16 : 1 << 20;

TEST(Tokenizer, LongRunsTakeNearlyLinearTime) {
  VocabularyFile bpe = byte_vocabulary();
  VocabularyFile spm = spm_vocabulary();
  for (const std::string_view unit : {"a", "\u0120", "\u010a"})
    for (std::string half(unit); half.size() < 40; half += half) bpe.add_merge(half, half);
  for (const std::string_view unit : {"a", "\xe2\x96\x81", "\n"}) {
    float score = -1;
    for (std::string run(unit); run.size() < 60; run += unit)
      spm.add(run, TokenKind::kNormal, score -= 1);
  }
  const testing::ProcessorTime time;
  for (const auto& tokenizer : {make(bpe), make(spm)})
    for (const char c : {'a', ' ', '\n', '\xff'})
      for (const std::string_view end : {"", "b"}) {
        const std::string text = std::string(kLongRun, c).append(end);
        const auto ids = tokenizer->encode(text, true);
        ASSERT_TRUE(ids.ok()) << ids.status().message();
        EXPECT_EQ(tokenizer->decode(ids.value()).value(), text);
      }
  EXPECT_LT(time.seconds(), 120.0);
}

}  // namespace
}  // namespace strata
