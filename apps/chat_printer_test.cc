#include "chat_printer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace strata::apps {
namespace {

struct Screen {
  std::string text;
  Printer printer(PrinterOptions options) {
    options.tags = {"<think>", "</think>"};
    return Printer(
        [this](std::string_view piece) {
          text += piece;
          return Status();
        },
        options);
  }
};

TEST(Printer, EndsWithExactlyOneNewline) {
  for (const std::string_view answer : {"text", "text\n", ""}) {
    Screen screen;
    Printer printer = screen.printer({});
    ASSERT_TRUE(printer.content(answer).ok());
    ASSERT_TRUE(printer.finish().ok());
    EXPECT_EQ(screen.text, answer.empty() ? "\n" : "text\n");
  }
}

TEST(Printer, LetsNoEscapeSequenceReachATerminal) {
  Screen screen;
  Printer printer = screen.printer({.terminal = true, .tags = {}});
  ASSERT_TRUE(printer
                  .content("a\x1b[2Jb\r\x07\x7f\tc\xc2\x9b"
                           "31md\n\xc3\xa9\xe6\x97\xa5")
                  .ok());
  EXPECT_EQ(screen.text, "a[2Jb\tc31md\n\xc3\xa9\xe6\x97\xa5");
}

TEST(Printer, KeepsEveryByteForAFile) {
  Screen screen;
  Printer printer = screen.printer({});
  ASSERT_TRUE(printer.content("a\x1b[2J\r").ok());
  EXPECT_EQ(screen.text, "a\x1b[2J\r");
}

TEST(Printer, DimsReasoningOnATerminal) {
  Screen screen;
  Printer printer = screen.printer({.terminal = true, .tags = {}});
  ASSERT_TRUE(printer.reasoning("hm").ok());
  ASSERT_TRUE(printer.reasoning("m").ok());
  ASSERT_TRUE(printer.content("yes").ok());
  ASSERT_TRUE(printer.finish().ok());
  EXPECT_EQ(screen.text, "\x1b[2mhmm\x1b[0m\n\nyes\n");
}

TEST(Printer, ResetsTheDimmingOfAnUnfinishedThought) {
  Screen screen;
  Printer printer = screen.printer({.terminal = true, .tags = {}});
  ASSERT_TRUE(printer.reasoning("hm").ok());
  ASSERT_TRUE(printer.finish().ok());
  EXPECT_EQ(screen.text, "\x1b[2mhm\x1b[0m\n");
}

TEST(Printer, MarksReasoningInAFileByTheModelsTags) {
  Screen screen;
  Printer printer = screen.printer({});
  ASSERT_TRUE(printer.reasoning("hm").ok());
  ASSERT_TRUE(printer.content("yes").ok());
  ASSERT_TRUE(printer.finish().ok());
  EXPECT_EQ(screen.text, "<think>\nhm\n</think>\n\nyes\n");
}

TEST(Printer, HidesReasoningWhenAsked) {
  Screen screen;
  Printer printer = screen.printer({.terminal = true, .hide_thinking = true, .tags = {}});
  ASSERT_TRUE(printer.reasoning("hm").ok());
  ASSERT_TRUE(printer.content("yes").ok());
  ASSERT_TRUE(printer.finish().ok());
  EXPECT_EQ(screen.text, "yes\n");
}

TEST(Printer, SaysWhyADeviceTakesNoText) {
  const int full = ::open("/dev/full", O_WRONLY);
  if (full < 0) GTEST_SKIP() << "no full device on this system";
  const Status status = descriptor_out(full)("text");
  ::close(full);
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_NE(status.message().find("No space left"), std::string::npos);
}

}  // namespace
}  // namespace strata::apps
