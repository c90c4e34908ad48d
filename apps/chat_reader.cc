#include "chat_reader.h"

#include <histedit.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace strata::apps {
namespace {

constexpr std::string_view kMarks = "\"\"\"";
constexpr int kHistoryLines = 1000;

std::string_view without_leading_space(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text;
}

// Where the marks open a text in the first line of a message; npos: nowhere.
std::size_t opening_marks(std::string_view line) {
  const std::string_view start = without_leading_space(line);
  const std::size_t marks = line.find(kMarks);
  const bool at_start = start.starts_with(kMarks);
  return at_start || start.starts_with("/set ") ? marks : std::string_view::npos;
}

// While it lives, the terminal hands over every key at once, Ctrl-C and Ctrl-D among them. libedit
// sees to that only after it wrote the prompt; what a fast hand types in between would be echoed
// twice, become a signal, or be lost.
class KeysAtOnce {
 public:
  KeysAtOnce() { set(false); }
  ~KeysAtOnce() { set(true); }
  KeysAtOnce(const KeysAtOnce&) = delete;
  KeysAtOnce& operator=(const KeysAtOnce&) = delete;

 private:
  static void set(bool by_line) {
    constexpr tcflag_t kByLine = ICANON | ECHO | ISIG;
    termios mode{};
    if (tcgetattr(STDIN_FILENO, &mode) != 0) return;
    mode.c_lflag = by_line ? mode.c_lflag | kByLine : mode.c_lflag & ~kByLine;
    tcsetattr(STDIN_FILENO, TCSANOW, &mode);
  }
};

class EditLineReader final : public LineReader {
 public:
  ~EditLineReader() override {
    if (edit_ != nullptr) el_end(edit_);
    if (history_ != nullptr) history_end(history_);
  }

  Status start() {
    // libedit reads characters as the locale has them.
    std::setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
    FILE* const screen = isatty(STDOUT_FILENO) == 1 ? stdout : stderr;
    edit_ = el_init("strata", stdin, screen, stderr);
    history_ = history_init();
    if (edit_ == nullptr || history_ == nullptr)
      return io_error("the terminal does not allow line editing");
    HistEvent event;
    history(history_, &event, H_SETSIZE, kHistoryLines);
    history(history_, &event, H_SETUNIQUE, 1);
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_PROMPT, &EditLineReader::show_prompt);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_SIGNAL, 1);
    el_set(edit_, EL_HIST, history, history_);
    // While a line is edited Ctrl-C and Ctrl-Z are keys.
    el_set(edit_, EL_SETTY, "-d", "-isig", nullptr);
    el_set(edit_, EL_ADDFN, "strata-interrupt", "drop the line", &EditLineReader::on_interrupt);
    el_set(edit_, EL_BIND, "^C", "strata-interrupt", nullptr);
    el_set(edit_, EL_ADDFN, "strata-suspend", "stop the program", &EditLineReader::on_suspend);
    el_set(edit_, EL_BIND, "^Z", "strata-suspend", nullptr);
    el_set(edit_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    return {};
  }

  Outcome read(const std::string& prompt, std::string& line) override {
    prompt_ = prompt;
    interrupted_ = false;
    const KeysAtOnce keys;
    int length = 0;
    const char* const text = el_gets(edit_, &length);
    if (interrupted_) return Outcome::kInterrupted;
    if (text == nullptr || length <= 0) return Outcome::kEnd;
    line.assign(text, static_cast<std::size_t>(length));
    while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
    HistEvent event;
    if (!without_leading_space(line).empty()) history(history_, &event, H_ENTER, line.c_str());
    return Outcome::kLine;
  }

 private:
  static EditLineReader& of(EditLine* edit) {
    void* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return *static_cast<EditLineReader*>(self);
  }
  static char* show_prompt(EditLine* edit) { return of(edit).prompt_.data(); }
  static unsigned char on_interrupt(EditLine* edit, int) {
    of(edit).interrupted_ = true;
    return CC_NEWLINE;
  }
  static unsigned char on_suspend(EditLine*, int) {
    (void)std::raise(SIGTSTP);
    return CC_REDISPLAY;
  }

  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
  std::string prompt_;
  bool interrupted_ = false;
};

}  // namespace

bool MessageAssembler::add(std::string_view line) {
  if (open_) {
    text_ += '\n';
  } else {
    text_.clear();
    const std::size_t marks = opening_marks(line);
    if (marks == std::string_view::npos) {
      text_ = line;
      return true;
    }
    open_ = true;
    quoted_ = without_leading_space(line).starts_with(kMarks);
    if (!quoted_) text_ = line.substr(0, marks);
    line.remove_prefix(marks + kMarks.size());
  }
  const std::size_t end = line.find(kMarks);
  text_ += line.substr(0, end);
  if (end != std::string_view::npos) open_ = false;
  return !open_;
}

MessageAssembler::Message MessageAssembler::take() {
  return {std::exchange(text_, {}), std::exchange(quoted_, false)};
}

Result<std::unique_ptr<LineReader>> LineReader::create() {
  auto reader = std::make_unique<EditLineReader>();
  STRATA_TRY(reader->start());
  return std::unique_ptr<LineReader>(std::move(reader));
}

}  // namespace strata::apps
