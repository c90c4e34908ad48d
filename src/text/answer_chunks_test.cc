// Answers with tool calls come to the same however their text is cut into tokens.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>
#include <random>

#include "text/answer.h"
#include "text/tokenizer/test_support.h"

namespace strata {
namespace {

constexpr std::size_t kLongestPiece = 9;

// Every short piece of a text is a token, and so is the whole.
class PiecesOf {
 public:
  explicit PiecesOf(std::string_view text) : text_(text) {
    testing::VocabularyFile file;
    for (std::size_t at = 0; at < text.size(); ++at)
      for (std::size_t size = 1; size <= std::min(kLongestPiece, text.size() - at); ++size)
        add(file, text.substr(at, size));
    add(file, text);
    auto made = file.create();
    EXPECT_TRUE(made.ok()) << made.status().message();
    tokenizer_ = std::move(*made);
  }

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  TokenId whole() const { return tokens_.at(std::string(text_)); }
  template <typename NextSize>
  std::vector<TokenId> cut(NextSize next_size) const {
    std::vector<TokenId> out;
    for (std::size_t at = 0; at < text_.size();) {
      const std::string piece(text_.substr(at, next_size()));
      out.push_back(tokens_.at(piece));
      at += piece.size();
    }
    return out;
  }

 private:
  void add(testing::VocabularyFile& file, std::string_view piece) {
    if (tokens_.contains(std::string(piece))) return;
    std::string spelled;
    for (const char byte : piece)
      append_utf8(byte_to_letter(static_cast<unsigned char>(byte)), spelled);
    tokens_[std::string(piece)] = file.add(spelled);
  }

  const std::string text_;
  std::map<std::string, TokenId> tokens_;
  std::unique_ptr<const Tokenizer> tokenizer_;
};

AnswerOptions with_tools(ToolStyle style) {
  const auto tools = read_tools(boost::json::parse(R"([{"function": {"name": "f", "parameters": {
      "properties": {"s": {"type": "string"}, "n": {"type": "integer"}, "o": {}}}}}])"));
  EXPECT_TRUE(tools.ok()) << tools.status().message();
  return {.stops = {"STOP"}, .tags = {"<think>", "</think>"}, .tool_style = style, .tools = *tools};
}

void expect_same(const AnswerText& answer, const AnswerText& whole, const std::string& text) {
  EXPECT_EQ(answer.reasoning(), whole.reasoning()) << text;
  EXPECT_EQ(answer.content(), whole.content()) << text;
  EXPECT_EQ(answer.stopped(), whole.stopped()) << text;
  EXPECT_EQ(answer.error().message(), whole.error().message()) << text;
  ASSERT_EQ(answer.calls().size(), whole.calls().size()) << text;
  for (std::size_t i = 0; i < answer.calls().size(); ++i) {
    EXPECT_EQ(answer.calls()[i].id, whole.calls()[i].id) << text;
    EXPECT_EQ(answer.calls()[i].name, whole.calls()[i].name) << text;
    EXPECT_EQ(answer.calls()[i].arguments, whole.calls()[i].arguments) << text;
  }
}

// What is known of a call is never taken back: it is how the whole begins.
void expect_start(const AnswerText& answer, const AnswerText& whole, const std::string& text) {
  ASSERT_LE(answer.calls().size(), whole.calls().size()) << text;
  for (std::size_t i = 0; i < answer.calls().size(); ++i)
    ASSERT_TRUE(whole.calls()[i].arguments.starts_with(answer.calls()[i].arguments)) << text;
  ASSERT_TRUE(whole.content().starts_with(answer.content())) << text;
  ASSERT_TRUE(whole.reasoning().starts_with(answer.reasoning())) << text;
}

// All that the deltas say, as a client that streams adds it up.
struct StreamedAnswer {
  std::string reasoning, content;
  std::vector<ToolCall> calls;

  void add(const AnswerDelta& delta) {
    reasoning += delta.reasoning;
    content += delta.content;
    for (const ToolCallDelta& call : delta.calls) {
      if (!call.id.empty()) calls.push_back({call.id, call.name, {}});
      ASSERT_EQ(static_cast<std::size_t>(call.index) + 1, calls.size());
      calls.back().arguments += call.arguments;
    }
  }
  void expect_is(const AnswerText& answer, const std::string& text) const {
    EXPECT_EQ(reasoning, answer.reasoning()) << text;
    EXPECT_EQ(content, answer.content()) << text;
    ASSERT_EQ(calls.size(), answer.calls().size()) << text;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(calls[i].name, answer.calls()[i].name) << text;
      EXPECT_EQ(calls[i].arguments, answer.calls()[i].arguments) << text;
    }
  }
};

// The calls that the answer as a whole has.
std::size_t expect_same_for_any_cut(ToolStyle style, const std::string& text, Detokenizer::End end,
                                    std::mt19937& random) {
  const PiecesOf pieces(text);
  AnswerText whole(pieces.tokenizer(), with_tools(style));
  StreamedAnswer at_once;
  at_once.add(whole.push(pieces.whole()));
  at_once.add(whole.finish(end));
  at_once.expect_is(whole, text);
  for (std::size_t most = 1; most <= kLongestPiece; ++most) {
    const auto size = [&] { return most == 1 ? 1 : 1 + random() % most; };
    AnswerText answer(pieces.tokenizer(), with_tools(style));
    StreamedAnswer streamed;
    for (const TokenId token : pieces.cut(size)) {
      streamed.add(answer.push(token));
      expect_start(answer, whole, text);
    }
    streamed.add(answer.finish(end));
    streamed.expect_is(answer, text);
    expect_same(answer, whole, text);
  }
  return whole.calls().size();
}

struct Sample {
  ToolStyle style;
  std::string text;
  std::size_t calls;
};

std::vector<Sample> samples() {
  const std::string hermes =
      "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"s\": \"a \\\"b\\\" \xc3\xa9\", \"n\": 12, "
      "\"o\": [{\"x\": null}]}}\n</tool_call>";
  const std::string llama =
      "{\"name\": \"f\", \"parameters\": {\"s\": \"a } \xe2\x82\xac\", \"n\": -1.5e3}}";
  const std::string tagged =
      "<tool_call>\n<function=f>\n<parameter=s>\nline "
      "\"one\"\n\n\xf0\x9f\x98\x8a</p\n</parameter>\n"
      "<parameter=n>\n12\n</parameter>\n<parameter=o>\n{\"x\": [1]}\n</parameter>\n</function>\n"
      "</tool_call>";
  return {
      {ToolStyle::kNone, hermes, 0},
      {ToolStyle::kHermes, hermes, 1},
      {ToolStyle::kHermes, "<think>\nhm\n</think>\n\nSee: " + hermes + "\n" + hermes + " so", 2},
      {ToolStyle::kHermes, "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"n\\\": 1}\"}", 1},
      {ToolStyle::kHermes, "a <tool_call>[1, 2]</tool_call> STO, then STOP and on", 0},
      {ToolStyle::kLlama, llama, 1},
      {ToolStyle::kLlama, "<think>hm</think>" + llama + "; " + llama, 2},
      {ToolStyle::kLlama, "Well <|python_tag|>" + llama, 1},
      {ToolStyle::kLlama, "{\"name\": \"other\", \"parameters\": {}}", 0},
      {ToolStyle::kFunctionTags, tagged, 1},
      {ToolStyle::kFunctionTags, "<think>hm</think>\n\nI do.\n" + tagged + "\n" + tagged, 2},
      {ToolStyle::kFunctionTags, "<function=f><parameter=n>True</parameter></function> ok", 1}};
}

TEST(AnswerChunks, CallsOfEveryStyleAreTheSameForAnyCut) {
  std::mt19937 random(11);
  for (const Sample& each : samples())
    EXPECT_EQ(expect_same_for_any_cut(each.style, each.text, Detokenizer::End::kComplete, random),
              each.calls)
        << each.text;
}

TEST(AnswerChunks, SoAreThoseThatBreakOffOrLackAPiece) {
  std::mt19937 random(12);
  for (const Sample& each : samples()) {
    for (int round = 0; round < (STRATA_SLOW ? 4 : 40); ++round) {
      std::string text = each.text;
      if (round % 2 == 0) text.resize(1 + random() % text.size());
      text.erase(random() % text.size(), round % 3);
      if (text.empty()) continue;
      const auto end = round % 4 < 2 ? Detokenizer::End::kComplete : Detokenizer::End::kCut;
      expect_same_for_any_cut(each.style, text, end, random);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace strata
