// How far recursion that input controls may go on the calling thread's stack.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strata {

// For the thread that makes it. A pointer comparison per question.
class StackRoom {
 public:
  // What has to be left for calls that do not ask, and for the way back.
  static constexpr std::size_t kReservedBytes = 64 << 10;

  StackRoom();
  bool is_left() const {
    return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) > lowest_;
  }

 private:
  std::uintptr_t lowest_;  // that may be in use; stacks grow downwards
};

}  // namespace strata
