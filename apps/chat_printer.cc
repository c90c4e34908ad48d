#include "chat_printer.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/utf8.h"

namespace strata::apps {
namespace {

constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kPlain = "\x1b[0m";

// C0, DEL and C1.
bool is_unsafe(char32_t character) {
  if (character == U'\n' || character == U'\t') return false;
  return character < 0x20 || (character >= 0x7f && character < 0xa0);
}

}  // namespace

TextOut descriptor_out(int descriptor) {
  return [descriptor](std::string_view text) -> Status {
    while (!text.empty()) {
      const ssize_t written = ::write(descriptor, text.data(), text.size());
      if (written >= 0) {
        text.remove_prefix(static_cast<std::size_t>(written));
      } else if (errno == EAGAIN) {
        pollfd wait{descriptor, POLLOUT, 0};
        (void)::poll(&wait, 1, -1);
      } else if (errno != EINTR) {
        return io_error("cannot write the answer: {}", std::strerror(errno));
      }
    }
    return {};
  };
}

std::string safe_for_terminal(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Prefix prefix = utf8_prefix(text);
    if (prefix.kind == Utf8Prefix::Kind::kCharacter && !is_unsafe(prefix.character))
      out += text.substr(0, prefix.bytes);
    text.remove_prefix(prefix.bytes);
  }
  return out;
}

Status Printer::reasoning(std::string_view text) {
  if (text.empty() || options_.hide_thinking) return {};
  STRATA_TRY(enter(Part::kReasoning));
  return this->text(text);
}

Status Printer::content(std::string_view text) {
  if (text.empty()) return {};
  STRATA_TRY(enter(Part::kContent));
  return this->text(text);
}

Status Printer::finish() {
  if (part_ == Part::kReasoning && options_.terminal) STRATA_TRY(write(kPlain));
  if (part_ == Part::kNone || !at_line_start_) STRATA_TRY(write("\n"));
  part_ = Part::kNone;
  at_line_start_ = true;
  return {};
}

Status Printer::enter(Part part) {
  const Part before = std::exchange(part_, part);
  if (before == part) return {};
  if (part == Part::kReasoning)
    return write(options_.terminal ? std::string(kDim) : options_.tags.open + "\n");
  if (before == Part::kReasoning)
    return write(options_.terminal ? std::string(kPlain) + "\n\n"
                                   : "\n" + options_.tags.close + "\n\n");
  return {};
}

Status Printer::text(std::string_view text) {
  at_line_start_ = text.ends_with('\n');
  return options_.terminal ? write(safe_for_terminal(text)) : write(text);
}

Status Printer::write(std::string_view text) { return out_(text); }

}  // namespace strata::apps
