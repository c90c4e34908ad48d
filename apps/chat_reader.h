// Reads what a user types: lines with editing and history, several of them between """ marks.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace strata::apps {

// Puts lines together to one message. A line that starts with """ (or a /set command whose value
// does) opens a text that ends at the next """.
class MessageAssembler {
 public:
  // Whether the message is complete; if not, more lines are wanted.
  bool add(std::string_view line);
  // REQUIRES: complete. The object is then as new.
  struct Message {
    std::string text;
    bool quoted = false;  // was between marks as a whole: never a command
  };
  Message take();
  void reset() { *this = {}; }
  bool open() const { return open_; }

 private:
  std::string text_;
  bool open_ = false;
  bool quoted_ = false;
};

// The terminal's line editor (libedit). One at a time.
class LineReader {
 public:
  enum class Outcome { kLine, kInterrupted, kEnd };

  // REQUIRES: standard input is a terminal.
  static Result<std::unique_ptr<LineReader>> create();
  virtual ~LineReader() = default;

  // kInterrupted: Ctrl-C; kEnd: Ctrl-D on an empty line, or the terminal is gone. `line` has no
  // newline.
  virtual Outcome read(const std::string& prompt, std::string& line) = 0;
};

}  // namespace strata::apps
