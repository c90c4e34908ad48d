// Cuts text into pieces by the stages of a pre-tokenizer.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer/pre_tokenizers.h"

namespace strata {

class Splitter {
 public:
  static Result<Splitter> create(std::span<const SplitStage> stages);

  Splitter(Splitter&&) noexcept;
  Splitter& operator=(Splitter&&) noexcept;
  ~Splitter();

  // Replaces `pieces` by the pieces of `text`: in order, none empty, together all of it. Text that
  // is not UTF-8 is cut around each run of bytes that are part of no character, and such a run is
  // one piece. Any thread; linear time for the rules of pre_tokenizers.cc.
  Status split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  struct Stage;
  explicit Splitter(std::vector<Stage> stages);

  std::vector<Stage> stages_;
};

}  // namespace strata
