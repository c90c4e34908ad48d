#include "text/answer.h"

#include <gtest/gtest.h>

#include "gguf/gguf_file.h"
#include "tests/shared_data.h"
#include "text/tokenizer/test_support.h"

namespace strata {
namespace {

const ThinkingTags kTags = {"<think>", "</think>"};

class AnswerTextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    STRATA_REQUIRE_SHARED_DATA();
    const auto path = testing::shared_data_root() / "reference" / "llama.gguf";
    const auto file = GgufFile::open(path.string());
    ASSERT_TRUE(file.ok()) << file.status().message();
    auto tokenizer = Tokenizer::create(file->metadata());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    tokenizer_ = std::move(*tokenizer);
  }

  // What an answer that spells `text` shows, token by token.
  std::string show(AnswerText& answer, std::string_view text, Detokenizer::End end) {
    const auto tokens = tokenizer_->encode(text, false, {.add_bos = false, .add_eos = false});
    EXPECT_GT(tokens->size(), 3u);
    std::string shown;
    const auto add = [&](const AnswerDelta& piece) {
      if (!piece.reasoning.empty()) shown += "(" + piece.reasoning + ")";
      shown += piece.content;
    };
    for (const TokenId token : *tokens) add(answer.push(token));
    add(answer.finish(end));
    return shown;
  }

  std::unique_ptr<const Tokenizer> tokenizer_;
};

TEST_F(AnswerTextTest, CutsAtAStopStringThatSpansTokens) {
  AnswerText answer(*tokenizer_, {.stops = {"own fox"}});
  EXPECT_EQ(show(answer, "The quick brown fox jumps", Detokenizer::End::kCut), "The quick br");
  EXPECT_TRUE(answer.stopped());
  EXPECT_EQ(answer.content(), "The quick br");
}

TEST_F(AnswerTextTest, FlushesHeldTextAtTheEnd) {
  AnswerText answer(*tokenizer_, {.stops = {"?!"}});
  EXPECT_EQ(show(answer, "Is that so?", Detokenizer::End::kComplete), "Is that so?");
  EXPECT_FALSE(answer.stopped());
}

TEST_F(AnswerTextTest, TellsReasoningFromTheAnswer) {
  AnswerText answer(*tokenizer_, {.tags = kTags});
  show(answer, "<think>\nhm, hm\n</think>\n\nyes", Detokenizer::End::kComplete);
  EXPECT_EQ(answer.reasoning(), "hm, hm");
  EXPECT_EQ(answer.content(), "yes");
}

TEST_F(AnswerTextTest, AnAnswerCutInsideAnOpenedThoughtIsAllReasoning) {
  AnswerText answer(*tokenizer_, {.tags = kTags, .starts_thinking = true});
  show(answer, "still thinking </thi", Detokenizer::End::kCut);
  EXPECT_EQ(answer.reasoning(), "still thinking </thi");
  EXPECT_EQ(answer.content(), "");
}

TEST_F(AnswerTextTest, AStopStringInsideATagFlushesThroughTheSplitter) {
  AnswerText answer(*tokenizer_, {.stops = {"</stop"}, .tags = kTags, .starts_thinking = true});
  show(answer, "hm</think>yes</st", Detokenizer::End::kComplete);
  EXPECT_EQ(answer.reasoning(), "hm");
  EXPECT_EQ(answer.content(), "yes</st");
}

TEST_F(AnswerTextTest, DropsHalfACharacterWhereTheAnswerWasCut) {
  AnswerText cut(*tokenizer_, {}), complete(*tokenizer_, {});
  EXPECT_EQ(show(cut, "smile \xf0\x9f\x98", Detokenizer::End::kCut), "smile ");
  EXPECT_EQ(show(complete, "smile \xf0\x9f\x98", Detokenizer::End::kComplete),
            "smile \xef\xbf\xbd");
}

// Over bytes, so that a text is the tokens that the test wants.
class ByteAnswers : public ::testing::Test {
 protected:
  ByteAnswers() {
    testing::VocabularyFile file = testing::byte_vocabulary();
    think_ = file.add_control("<think>");
    end_think_ = file.add_control("</think>");
    call_ = file.add_control("<tool_call>");
    smile_ = file.add("\u00f0\u0141");  // the first two bytes of U+1F60A, as the vocabulary spells
    auto made = file.create();
    EXPECT_TRUE(made.ok()) << made.status().message();
    tokenizer_ = std::move(*made);
  }

  static std::vector<TokenId> bytes(std::string_view text) {
    std::vector<TokenId> out;
    for (const char byte : text) out.push_back(static_cast<unsigned char>(byte));
    return out;
  }

  // What all deltas say, which must be what the answer keeps.
  std::string show(AnswerOptions options, const std::vector<TokenId>& tokens,
                   Detokenizer::End end = Detokenizer::End::kComplete) const {
    AnswerText answer(*tokenizer_, std::move(options));
    AnswerDelta all;
    int errors = 0;
    const auto add = [&](const AnswerDelta& delta) {
      EXPECT_EQ(utf8_valid_bytes(delta.content), delta.content.size());
      EXPECT_EQ(utf8_valid_bytes(delta.reasoning), delta.reasoning.size());
      all.reasoning += delta.reasoning;
      all.content += delta.content;
      if (!delta.error.ok()) ++errors;
      for (const ToolCallDelta& call : delta.calls) {
        if (!call.name.empty()) all.calls.push_back({call.index, call.id, call.name, {}});
        all.calls.back().arguments += call.arguments;
      }
    };
    for (const TokenId token : tokens) add(answer.push(token));
    add(answer.finish(end));
    EXPECT_EQ(all.reasoning, answer.reasoning());
    EXPECT_EQ(all.content, answer.content());
    EXPECT_EQ(all.calls.size(), answer.calls().size());
    EXPECT_EQ(errors, answer.error().ok() ? 0 : 1);
    std::string out = all.reasoning.empty() ? "" : "(" + all.reasoning + ")";
    out += all.content;
    for (std::size_t i = 0; i < all.calls.size(); ++i) {
      EXPECT_EQ(all.calls[i].arguments, answer.calls()[i].arguments);
      out += "[" + all.calls[i].id + " " + all.calls[i].name + all.calls[i].arguments;
      out += answer.calls()[i].complete ? "]" : "..";
    }
    return out + (errors > 0 ? "!" : "");
  }

  std::unique_ptr<const Tokenizer> tokenizer_;
  TokenId think_, end_think_, call_, smile_;
};

TEST_F(ByteAnswers, ACharacterThatALimitCutsIsNotShown) {
  std::vector<TokenId> tokens = bytes("Hi ");
  tokens.push_back(smile_);
  EXPECT_EQ(show({}, tokens, Detokenizer::End::kCut), "Hi ");
  const std::vector<TokenId> rest = bytes("\x98\x8a");
  tokens.insert(tokens.end(), rest.begin(), rest.end());
  EXPECT_EQ(show({}, tokens, Detokenizer::End::kCut), "Hi \U0001F60A");
}

TEST_F(ByteAnswers, BytesThatAreNoTextAreReplaced) {
  for (const std::string_view wrong :
       {"\xc0\x80", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"}) {
    const std::string text = show({}, bytes("a" + std::string(wrong) + "b"));
    EXPECT_TRUE(text.starts_with("a\uFFFD") && text.ends_with("b")) << text;
  }
  // Also inside the arguments of a call.
  EXPECT_EQ(
      show({.tool_style = ToolStyle::kHermes},
           bytes("<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": \"\xff\"}}</tool_call>")),
      "[call_0 f{\"x\": \"\uFFFD\"}]");
}

TEST_F(ByteAnswers, OnlyTheStartOfAStopStringIsWithheld) {
  EXPECT_EQ(show({.stops = {"own fox"}}, bytes("The quick brown fox jumps")), "The quick br");
  EXPECT_EQ(show({.stops = {"beta gamma"}}, bytes("alpha beta gamma delta")), "alpha ");
  AnswerText answer(*tokenizer_, {.stops = {"own fox"}});
  std::string shown;
  for (const TokenId token : bytes("a brown d")) shown += answer.push(token).content;
  EXPECT_EQ(shown, "a brown d");
}

TEST_F(ByteAnswers, WithheldTextComesAtTheEnd) {
  EXPECT_EQ(show({.stops = {"\n", "?!"}}, bytes("Really?")), "Really?");
}

TEST_F(ByteAnswers, StopStringsAreFoundBeforeTagsAre) {
  const ThinkingTags tags = kTags;
  // The filter holds the tag's start back; its flush goes through the splitter and the parser.
  EXPECT_EQ(show({.stops = {"</thinking"}, .tags = tags}, bytes("<think>a</think>b")), "(a)b");
  EXPECT_EQ(show({.stops = {"</think>"}, .tags = tags}, bytes("<think>a</think>b")), "(a)");
  EXPECT_EQ(show({.stops = {"</tool_calls"}, .tool_style = ToolStyle::kHermes},
                 bytes("<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call")),
            "</tool_call[call_0 f{}]");
  EXPECT_EQ(show({.stops = {"</tool_call>"}, .tool_style = ToolStyle::kHermes},
                 bytes("<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>")),
            "[call_0 f{}]");
  // A stop inside of arguments cuts them, as a limit does.
  EXPECT_EQ(show({.stops = {"STOP"}, .tool_style = ToolStyle::kHermes},
                 bytes("<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": \"aSTOP\"}}")),
            "[call_0 f{\"x\": \"a..");
  EXPECT_EQ(show({.stops = {"STOP"}, .tool_style = ToolStyle::kHermes},
                 bytes("<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>"
                       "<tool_call>{\"name\": \"g\", \"arguments\": {STOP")),
            "[call_0 f{}][call_1 g{..");
}

TEST_F(ByteAnswers, ATruncatedThoughtThatThePromptOpenedIsAllReasoning) {
  EXPECT_EQ(show({.tags = kTags, .starts_thinking = true, .tool_style = ToolStyle::kHermes},
                 bytes("hm <tool_call>{\"na"), Detokenizer::End::kCut),
            "(hm <tool_call>{\"na)");
}

TEST_F(ByteAnswers, TagsMayBeControlTokens) {
  std::vector<TokenId> tokens = {think_};
  const auto add = [&](const std::vector<TokenId>& more) {
    tokens.insert(tokens.end(), more.begin(), more.end());
  };
  add(bytes("why"));
  add({end_think_});
  add(bytes("\n\n"));
  add({call_});
  add(bytes("{\"name\": \"f\", \"arguments\": {}}"));
  EXPECT_EQ(show({.tags = kTags, .tool_style = ToolStyle::kHermes}, tokens), "(why)[call_0 f{}]");
  // Where nobody reads them they are not shown.
  EXPECT_EQ(show({}, tokens), "why\n\n{\"name\": \"f\", \"arguments\": {}}");
}

TEST_F(ByteAnswers, AMalformedCallIsAnErrorOnceAndTheNextAnswerIsFine) {
  const AnswerOptions options{.tags = kTags,
                              .starts_thinking = true,
                              .tool_style = ToolStyle::kFunctionTags,
                              .call_id_prefix = "x"};
  EXPECT_EQ(show(options, bytes("<think>\nthinking\n</think>\n\n<tool_call>\n<function=write_file>"
                                "\n<parameter=path>\nprobe.txt\n</function>\n</tool_call>")),
            "(thinking)[x0 write_file{\"path\": ]!");
  EXPECT_EQ(show(options, bytes("</think><tool_call>\n<function=write_file>\n<parameter=path>\n"
                                "probe.txt\n</parameter>\n</function>\n</tool_call>")),
            "[x0 write_file{\"path\": \"probe.txt\"}]");
}

TEST_F(ByteAnswers, TokensAloneShowTheirBytes) {
  const TokenPiece piece = token_piece(*tokenizer_, smile_);
  EXPECT_EQ(piece.bytes, "\xf0\x9f");
  EXPECT_EQ(piece.text, "\uFFFD\uFFFD");
  EXPECT_EQ(token_piece(*tokenizer_, think_).text, "<think>");
  EXPECT_EQ(token_piece(*tokenizer_, 'a').text, "a");
}

}  // namespace
}  // namespace strata
