// Finds tool calls in a model's output, while it is still streaming.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tool_calls.h"

namespace strata {

class CallReader;

// What became known of a call. `id` and `name` come with its first delta only; the arguments of
// all its deltas, joined, are a JSON object, as the model wrote it where it wrote JSON, or the
// start of one where the call is cut.
struct ToolCallDelta {
  std::int32_t index = 0;
  std::string id, name, arguments;
};

// For one answer, used by one thread. What all pieces say together depends on the text alone, not
// on how it was cut. White space before calls is dropped, and behind them too unless it stands
// between content. Text that is not a call after all is content; a call whose name was already
// given out and that then breaks is an error.
class ToolCallParser {
 public:
  struct Piece {
    std::string content;
    std::vector<ToolCallDelta> calls;  // at most one delta for each call, ascending
    bool cut = false;                  // of finish(): the last call is not whole
    Status error;  // kCorrupt: a malformed call; said once, what follows is content
  };

  // `tools` may be empty where they are not known. Ids are `id_prefix` and the call's index.
  ToolCallParser(ToolStyle style, std::vector<Tool> tools, std::string id_prefix);
  ~ToolCallParser();
  ToolCallParser(ToolCallParser&&) noexcept;
  ToolCallParser& operator=(ToolCallParser&&) noexcept;

  Piece push(std::string_view text);
  // The output ended. `complete`: the model was done, so that a call that is not is an error; a
  // limit may cut it anywhere.
  Piece finish(bool complete);

 private:
  void take(char byte, Piece& piece);
  void take_text(char byte, Piece& piece);
  void start_call(std::string_view tag);
  void take_call(char byte, Piece& piece);
  void announce(Piece& piece);
  void abandon(Piece& piece, std::string_view trouble);
  void end_call();
  void show(std::string_view text, Piece& piece);
  std::vector<std::string_view> tags() const;

  ToolStyle style_;
  std::vector<Tool> tools_;
  std::string id_prefix_;
  std::vector<std::string_view> tags_;  // what would be read as a tag here
  std::string space_, tag_;             // held back: white space, then what may become a tag
  bool at_start_ = true;                // of the text, or behind a call
  bool has_content_ = false;
  bool behind_call_ = false;  // but for white space
  std::unique_ptr<CallReader> call_;
  std::string raw_;          // the text of a call that is not certain; later, of what follows it
  std::int32_t index_ = -1;  // of the last call that was certain
  bool announced_ = false;   // the call that is being read
  bool failed_ = false;
};

}  // namespace strata
