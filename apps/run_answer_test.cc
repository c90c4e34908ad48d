#include "run_answer.h"

#include <gtest/gtest.h>

#include "gguf/gguf_file.h"
#include "tests/shared_data.h"

namespace strata::apps {
namespace {

const ThinkingTags kTags = {"<think>", "</think>"};

class AnswerTextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    STRATA_REQUIRE_SHARED_DATA();
    const auto path = strata::testing::shared_data_root() / "reference" / "llama.gguf";
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
    const auto add = [&](const AnswerText::Piece& piece) {
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
  AnswerText answer(*tokenizer_, {"own fox"}, {}, false);
  EXPECT_EQ(show(answer, "The quick brown fox jumps", Detokenizer::End::kCut), "The quick br");
  EXPECT_TRUE(answer.stopped());
  EXPECT_EQ(answer.content(), "The quick br");
}

TEST_F(AnswerTextTest, FlushesHeldTextAtTheEnd) {
  AnswerText answer(*tokenizer_, {"?!"}, {}, false);
  EXPECT_EQ(show(answer, "Is that so?", Detokenizer::End::kComplete), "Is that so?");
  EXPECT_FALSE(answer.stopped());
}

TEST_F(AnswerTextTest, TellsReasoningFromTheAnswer) {
  AnswerText answer(*tokenizer_, {}, kTags, false);
  show(answer, "<think>\nhm, hm\n</think>\n\nyes", Detokenizer::End::kComplete);
  EXPECT_EQ(answer.reasoning(), "hm, hm");
  EXPECT_EQ(answer.content(), "yes");
}

TEST_F(AnswerTextTest, AnAnswerCutInsideAnOpenedThoughtIsAllReasoning) {
  AnswerText answer(*tokenizer_, {}, kTags, true);
  show(answer, "still thinking </thi", Detokenizer::End::kCut);
  EXPECT_EQ(answer.reasoning(), "still thinking </thi");
  EXPECT_EQ(answer.content(), "");
}

TEST_F(AnswerTextTest, AStopStringInsideATagFlushesThroughTheSplitter) {
  AnswerText answer(*tokenizer_, {"</stop"}, kTags, true);
  show(answer, "hm</think>yes</st", Detokenizer::End::kComplete);
  EXPECT_EQ(answer.reasoning(), "hm");
  EXPECT_EQ(answer.content(), "yes</st");
}

TEST_F(AnswerTextTest, DropsHalfACharacterWhereTheAnswerWasCut) {
  AnswerText cut(*tokenizer_, {}, {}, false), complete(*tokenizer_, {}, {}, false);
  EXPECT_EQ(show(cut, "smile \xf0\x9f\x98", Detokenizer::End::kCut), "smile ");
  EXPECT_EQ(show(complete, "smile \xf0\x9f\x98", Detokenizer::End::kComplete),
            "smile \xef\xbf\xbd");
}

}  // namespace
}  // namespace strata::apps
