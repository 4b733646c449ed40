//! The bars as a picture: SVG, written by hand.

use std::fmt::Write as _;

use super::report::{Section, number};

/// A bar of a chart.
#[derive(Debug, Clone)]
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) value: f64,
}

const WIDTH: f64 = 900.0;
const NAMES: f64 = 330.0;
const LINE: f64 = 22.0;

/// The sections that have bars, one below the other; each has its own scale.
pub(super) fn svg(sections: &[Section]) -> String {
    let (mut body, mut y) = (String::new(), 10.0);
    for section in sections.iter().filter(|section| !section.bars.is_empty()) {
        y += LINE;
        let _ =
            writeln!(body, r#"<text x="10" y="{y}" font-weight="bold">{}</text>"#, escaped(&section.title));
        let longest = section.bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
        for bar in &section.bars {
            y += LINE;
            let length = if longest > 0.0 { bar.value / longest * (WIDTH - NAMES - 110.0) } else { 0.0 };
            let _ = writeln!(
                body,
                "<text x=\"{}\" y=\"{y}\" text-anchor=\"end\">{}</text>\
                 <rect x=\"{NAMES}\" y=\"{}\" width=\"{length:.1}\" height=\"16\"/>\
                 <text x=\"{:.1}\" y=\"{y}\">{}</text>",
                NAMES - 8.0,
                escaped(&bar.name),
                y - 13.0,
                NAMES + length + 6.0,
                number(bar.value),
            );
        }
        y += LINE;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {y}\" font-family=\"sans-serif\" \
         font-size=\"13\" fill=\"#222\">\n<style>rect {{ fill: #3b6ea5 }}</style>\n\
         <rect width=\"100%\" height=\"100%\" style=\"fill:#fff\"/>\n{body}</svg>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each bar is in the picture, the longest over the whole width, and names are escaped.
    #[test]
    fn every_bar_is_drawn() {
        let mut section = Section::new("a < b", "", &[]);
        section.bar("slow", 1.0);
        section.bar("fast", 2.0);
        let svg = svg(&[section, Section::new("no bars", "", &[])]);
        assert_eq!(svg.matches("<rect x=").count(), 2);
        assert!(svg.contains("width=\"460.0\"") && svg.contains("width=\"230.0\""), "{svg}");
        assert!(svg.contains("a &lt; b") && !svg.contains("no bars"), "{svg}");
    }
}
