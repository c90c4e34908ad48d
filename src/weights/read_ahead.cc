#include "weights/read_ahead.h"

namespace strata {

ReadAhead::ReadAhead(std::span<const FileRange> ranges, std::span<std::uint8_t> memory)
    : ranges_(ranges), memory_(memory), thread_([this] { read_all(); }) {}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::span<std::uint8_t> ReadAhead::slot(std::size_t range) const {
  const std::size_t size = memory_.size() / kSlots;
  return memory_.subspan(range % kSlots * size, ranges_[range].bytes);
}

void ReadAhead::read_all() {
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    {
      std::unique_lock lock(mutex_);
      // The range taken last is still in use.
      changed_.wait(lock, [&] { return stop_ || i + 1 < taken_ + kSlots; });
      if (stop_) return;
    }
    Status outcome = ranges_[i].file->read_exactly(ranges_[i].offset, slot(i));
    const bool failed = !outcome.ok();
    {
      const std::lock_guard lock(mutex_);
      outcomes_[i % kSlots] = std::move(outcome);
      ++read_;
    }
    changed_.notify_all();
    if (failed) return;
  }
}

Result<std::span<const std::uint8_t>> ReadAhead::next() {
  std::unique_lock lock(mutex_);
  const std::size_t range = taken_++;
  changed_.notify_all();
  changed_.wait(lock, [&] { return read_ > range; });
  STRATA_TRY(outcomes_[range % kSlots]);
  return std::span<const std::uint8_t>(slot(range));
}

}  // namespace strata
