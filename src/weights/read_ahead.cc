#include "weights/read_ahead.h"

#include <algorithm>

namespace strata {
namespace {

std::size_t slot_bytes(std::span<const FileRange> ranges) {
  std::size_t largest = 1;
  for (const FileRange& range : ranges) largest = std::max<std::size_t>(largest, range.bytes);
  return round_up(largest, ReadAhead::kSlotAlignment);
}

}  // namespace

ReadAhead::ReadAhead(std::span<const FileRange> ranges, std::span<std::uint8_t> memory)
    : ranges_(ranges),
      memory_(memory),
      slot_bytes_(slot_bytes(ranges)),
      slots_(memory.size() / slot_bytes_),
      thread_([this] { read_all(); }) {}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::span<std::uint8_t> ReadAhead::slot(std::size_t range) const {
  return memory_.subspan(range % slots_ * slot_bytes_, ranges_[range].bytes);
}

void ReadAhead::read_all() {
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    {
      std::unique_lock lock(mutex_);
      // The range taken last is still in use.
      changed_.wait(lock, [&] { return stop_ || i + 1 < taken_ + slots_; });
      if (stop_) return;
    }
    Status outcome = ranges_[i].file->read_exactly(ranges_[i].offset, slot(i));
    const bool failed = !outcome.ok();
    {
      const std::lock_guard lock(mutex_);
      outcome_ = std::move(outcome);
      if (!failed) ++read_;
    }
    changed_.notify_all();
    if (failed) return;
  }
}

Result<std::span<const std::uint8_t>> ReadAhead::next() {
  std::unique_lock lock(mutex_);
  const std::size_t range = taken_++;
  changed_.notify_all();
  changed_.wait(lock, [&] { return read_ > range || !outcome_.ok(); });
  if (read_ <= range) return outcome_;
  return std::span<const std::uint8_t>(slot(range));
}

}  // namespace strata
