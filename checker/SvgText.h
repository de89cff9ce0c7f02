//===- SvgText.h - the text of an SVG picture *- C++ -*-===//

#ifndef BOWLINE_CHECKER_SVGTEXT_H
#define BOWLINE_CHECKER_SVGTEXT_H

#include "absl/strings/string_view.h"

#include <cstdint>
#include <string>

namespace bowline {

/// Escapes `text` as content or attribute value of XML 1.0. Bytes that are not UTF-8 and characters that XML forbids
/// become U+FFFD.
std::string escapeXml(absl::string_view text);

/// Returns at most the first `most` characters of a UTF-8 text. If it drops any, the last one is an ellipsis. A byte
/// that is not UTF-8 counts as a character.
std::string shortened(absl::string_view text, size_t most);

/// Formats a length of the picture in pixels, with at most one decimal: "12", "12.5".
std::string pixels(double value);

/// "512 B", "1.50 KiB", "981.8 KiB"
std::string describeBytes(uint64_t bytes);

/// "0 s", "1.25 µs", "98.7 ms", "12.3 s": three significant digits.
std::string describeSeconds(double seconds);

/// Returns the distance between the ticks of an axis: 1, 2 or 5 times a power of ten, so that [0, length] has at most
/// `most` ticks. Returns 0 unless the length is positive.
double distanceOfMarks(double length, unsigned most);

/// Writes elements of an SVG picture, one per line. Lengths are in pixels. Escapes all texts and titles.
class SvgText {
public:
  /// Begins a picture with a white background. `styles` is CSS, the content of a style element.
  SvgText(double width, double height, absl::string_view title, absl::string_view styles);

  /// Groups elements for scripts that read the picture: `style` is the class, `role` the data attribute.
  void beginGroup(absl::string_view style, absl::string_view role);
  void endGroup();

  /// Writes a text with its anchor at (x, y); the style sets which end of the text that is. Viewers show `title` as a
  /// tooltip; empty for none.
  void text(absl::string_view style, double x, double y, absl::string_view text, absl::string_view title = "");
  void rectangle(absl::string_view style, double x, double y, double width, double height,
                 absl::string_view title = "");
  void line(absl::string_view style, double x1, double y1, double x2, double y2);
  void circle(absl::string_view style, double x, double y, double radius, absl::string_view title = "");
  /// `path` is in the syntax of SVG's attribute `d`.
  void path(absl::string_view style, absl::string_view path, absl::string_view title = "");

  /// Ends the picture and returns it.
  std::string finish() &&;

private:
  void close(absl::string_view element, absl::string_view title);

  std::string out_;
};

} // namespace bowline

#endif // BOWLINE_CHECKER_SVGTEXT_H
