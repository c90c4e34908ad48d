#include "chat_session.h"

#include <gtest/gtest.h>

namespace strata::apps {
namespace {

namespace json = boost::json;

// A prompt of as many tokens as the messages have characters; refuses messages that say "refuse".
class SessionTest : public ::testing::Test {
 protected:
  ChatSession session(ChatLimits limits) {
    return ChatSession(
        [this](const json::array& messages) -> Result<Prompt> {
          last_ = messages;
          Prompt prompt;
          for (const json::value& message : messages) {
            const json::string& text = message.at("content").as_string();
            if (text == "refuse") return invalid_argument("the template refuses");
            prompt.tokens.resize(prompt.tokens.size() + text.size());
          }
          return prompt;
        },
        limits);
  }
  std::string roles() const {
    std::string out;
    for (const json::value& message : last_) out += message.at("role").as_string()[0];
    return out;
  }
  std::string text(std::size_t index) const {
    return std::string(last_.at(index).at("content").as_string());
  }

  json::array last_;
};

TEST_F(SessionTest, RendersTheWholeConversationEachTurn) {
  ChatSession chat = session({.context = 100});
  chat.set_system("sys");
  ASSERT_TRUE(chat.ask("one").ok());
  EXPECT_EQ(roles(), "su");
  chat.answer("because", "ONE");
  const auto turn = chat.ask("two");
  ASSERT_TRUE(turn.ok());
  EXPECT_EQ(roles(), "suau");
  EXPECT_EQ(last_[2].at("reasoning_content").as_string(), "because");
  EXPECT_EQ(turn->prompt.tokens.size(), 12u);
  EXPECT_EQ(turn->dropped, 0);
}

TEST_F(SessionTest, WithoutShiftAFullContextIsAnErrorAndChangesNothing) {
  ChatSession chat = session({.context = 10});
  ASSERT_TRUE(chat.ask("123").ok());
  chat.answer("", "456");
  const auto full = chat.ask("7890");
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(full.status().message().find("10 tokens of 10"), std::string::npos);
  EXPECT_EQ(chat.turns(), 1);
  EXPECT_TRUE(chat.ask("789").ok());
}

TEST_F(SessionTest, ShiftDropsTheOldestTurnsAndKeepsTheSystemMessage) {
  ChatSession chat = session({.context = 20, .reserve = 5, .shift = true});
  chat.set_system("sys");
  for (const char* const question : {"q1", "q2", "q3"}) {
    ASSERT_TRUE(chat.ask(question).ok());
    chat.answer("", "abc");
  }
  const auto turn = chat.ask("question");
  ASSERT_TRUE(turn.ok());
  EXPECT_EQ(turn->dropped, 3);
  EXPECT_EQ(roles(), "su");
  EXPECT_EQ(text(1), "question");
  EXPECT_EQ(chat.turns(), 1);
}

TEST_F(SessionTest, AMessageTooLongByItselfIsRefusedAndNothingIsLost) {
  ChatSession chat = session({.context = 8, .reserve = 2, .shift = true});
  ASSERT_TRUE(chat.ask("q").ok());
  chat.answer("", "a");
  const auto turn = chat.ask("much too long");
  ASSERT_FALSE(turn.ok());
  EXPECT_NE(turn.status().message().find("13 tokens"), std::string::npos);
  EXPECT_EQ(chat.turns(), 1);
}

TEST_F(SessionTest, MakesRoomForAnAnswerThatFillsTheContext) {
  ChatSession chat = session({.context = 12, .reserve = 2, .shift = true});
  ASSERT_TRUE(chat.ask("1234").ok());
  chat.answer("", "56");
  ASSERT_TRUE(chat.ask("78").ok());
  const auto room = chat.make_room(4);
  ASSERT_TRUE(room.ok());
  EXPECT_EQ(room->dropped, 1);
  EXPECT_EQ(roles(), "u");
  EXPECT_FALSE(chat.make_room(9).ok());  // nothing older is left
}

TEST_F(SessionTest, MakesNoRoomWithoutShift) {
  ChatSession chat = session({.context = 12});
  ASSERT_TRUE(chat.ask("1").ok());
  chat.answer("", "2");
  ASSERT_TRUE(chat.ask("3").ok());
  EXPECT_FALSE(chat.make_room(9).ok());
  EXPECT_EQ(chat.turns(), 2);
}

TEST_F(SessionTest, ARefusedOrUnansweredQuestionIsWithdrawn) {
  ChatSession chat = session({.context = 100});
  EXPECT_EQ(chat.ask("refuse").status().message(), "the template refuses");
  EXPECT_EQ(chat.turns(), 0);
  ASSERT_TRUE(chat.ask("one").ok());
  chat.answer("", "");
  EXPECT_EQ(chat.turns(), 0);
  ASSERT_TRUE(chat.ask("two").ok());
  EXPECT_EQ(roles(), "u");
}

}  // namespace
}  // namespace strata::apps
