// Shows an answer as it streams in.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/reasoning.h"

namespace strata::apps {

// Takes text to where it is read, at once.
using TextOut = std::function<Status(std::string_view)>;
// Writes to a file descriptor; fails with the system's reason.
TextOut descriptor_out(int descriptor);

// Without control characters other than newline and tab: a model must not be able to send escape
// sequences to the terminal. `text` holds whole UTF-8 characters.
std::string safe_for_terminal(std::string_view text);

struct PrinterOptions {
  bool terminal = false;       // filter control characters, dim reasoning
  bool hide_thinking = false;  // reasoning is not shown
  ThinkingTags tags;           // mark shown reasoning where there is no dimming
};

// For one answer at a time; after finish() it is ready for the next. Output ends with a newline.
class Printer {
 public:
  Printer(TextOut out, PrinterOptions options)
      : out_(std::move(out)), options_(std::move(options)) {}

  Status reasoning(std::string_view text);
  Status content(std::string_view text);
  // An empty answer is an empty line.
  Status finish();

 private:
  enum class Part { kNone, kReasoning, kContent };

  Status enter(Part part);
  Status text(std::string_view text);
  Status write(std::string_view text);

  TextOut out_;
  PrinterOptions options_;
  Part part_ = Part::kNone;
  bool at_line_start_ = true;
};

}  // namespace strata::apps
