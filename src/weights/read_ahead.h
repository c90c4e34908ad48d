// Reads a list of byte ranges in order, on a thread of its own, while the ranges read before are
// being used.
#pragma once

#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/file.h"

namespace strata {

struct FileRange {
  const File* file = nullptr;
  Bytes offset = 0;
  Bytes bytes = 0;
};

class ReadAhead {
 public:
  static constexpr std::size_t kSlotAlignment = 64;
  static constexpr std::size_t kFewestSlots = 2;  // one in use, one being read

  // Reads as far ahead as `memory` allows. REQUIRES: it holds kFewestSlots of the largest range,
  // rounded up to kSlotAlignment.
  // Files, ranges and memory outlive the object.
  ReadAhead(std::span<const FileRange> ranges, std::span<std::uint8_t> memory);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // The bytes of the next range, until the call after; an error where they could not be read.
  // REQUIRES: called by one thread, at most once per range and not after an error.
  Result<std::span<const std::uint8_t>> next();

 private:
  void read_all();
  std::span<std::uint8_t> slot(std::size_t range) const;

  const std::span<const FileRange> ranges_;
  const std::span<std::uint8_t> memory_;
  const std::size_t slot_bytes_;
  const std::size_t slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Status outcome_;         // of the range read last
  std::size_t read_ = 0;   // ranges read well
  std::size_t taken_ = 0;  // ranges next() was called for
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace strata
