#include "base/stack_room.h"

#include <pthread.h>

namespace strata {
namespace {

constexpr std::size_t kLeastStackBytes = 256 << 10;  // taken where the system does not tell

std::uintptr_t end_of_stack() {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return here - kLeastStackBytes;
  void* lowest = nullptr;
  std::size_t bytes = 0;
  const int failed = pthread_attr_getstack(&attributes, &lowest, &bytes);
  pthread_attr_destroy(&attributes);
  return failed == 0 ? reinterpret_cast<std::uintptr_t>(lowest) : here - kLeastStackBytes;
}

}  // namespace

StackRoom::StackRoom() : lowest_(end_of_stack() + kReservedBytes) {}

}  // namespace strata
