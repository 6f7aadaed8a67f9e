//! What drawings hold: every mark and text, inside their canvas.

use super::*;

fn chart(body: Body) -> Chart {
    let (x, y) = (
        Axis::log("object size", Unit::Bytes),
        Axis::linear("throughput", Unit::BytesPerS),
    );
    Chart::new("A <title> & more", x, y, body).noted("Hollow: not VALID.")
}

fn point(x: f64, y: f64) -> Point {
    Point {
        x,
        y,
        ci: Some((y * 0.9, y * 1.1)),
        flawed: x > 5000.0,
    }
}

#[test]
fn a_file_is_complete_and_escaped() {
    let series = |name: &str, look| Series {
        name: name.to_owned(),
        points: vec![point(1024.0, 1e6), point(4096.0, 2e6), point(65_536.0, 9e6)],
        look,
        markers: true,
        ..Series::default()
    };
    let many = (0..12)
        .map(|i| series(&format!("<target {i}> with a long name"), i))
        .collect();
    let file = chart(Body::Lines(many)).file();
    assert!(file.starts_with("<svg xmlns="));
    assert!(file.contains("A &lt;title&gt; &amp; more"));
    assert!(file.contains("&lt;target 3&gt;"));
    assert!(!file.contains("NaN") && !file.contains("inf"), "{file}");
    // Every opened tag is closed.
    for tag in ["svg", "g", "text", "title", "desc", "style"] {
        let open =
            file.matches(&format!("<{tag}>")).count() + file.matches(&format!("<{tag} ")).count();
        assert_eq!(open, file.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    // Flawed points are hollow, and every point has its interval.
    assert_eq!(
        file.matches("hollow").count()
            - CSS.matches("hollow").count()
            - LIGHT.matches("hollow").count(),
        12
    );
    assert_eq!(file.matches("class=\"ci ").count(), 36);
}

#[test]
fn bars_have_texts_and_empty_charts_are_detected() {
    let bars = Bars {
        groups: vec![(
            "group".to_owned(),
            vec![Bar {
                look: 0,
                value: 3.0,
                ci: Some((2.0, 4.0)),
                text: "3×".to_owned(),
                flawed: true,
            }],
        )],
        legend: vec!["ours".to_owned()],
        mark: Some(1.0),
    };
    let chart = chart(Body::Bars(bars));
    assert!(!chart.is_empty());
    let inline = chart.figure();
    assert!(
        inline.contains("3×") && inline.contains("hollow") && inline.contains("class=\"over\"")
    );
    assert!(
        Chart {
            body: Body::Lines(vec![Series::default()]),
            ..chart
        }
        .is_empty()
    );
}

#[test]
fn no_drawing_is_wider_than_its_figure_or_scaled() {
    let line = Series::line("a", 0, [(1.0, 1.0), (2.0, 3.0)]);
    let (x, y) = (Axis::log("x", Unit::Bytes), Axis::log("y", Unit::Ns));
    let drawn = Chart::lines("c", x, y, [line]).wide().figure();
    for canvas in [PAGE, PHONE, BROAD] {
        let size = format!(" width=\"{0}\" height=\"", canvas.width);
        let start = drawn.find(&size).expect("a drawing for each width");
        let tag = drawn[start..].split('>').next().unwrap_or_default();
        let height = tag.split('"').nth(3).unwrap_or_default();
        // Width and height are those of the view box.
        assert!(
            tag.contains(&format!("viewBox=\"0 0 {} {height}\"", canvas.width)),
            "{tag}"
        );
    }
    assert!(drawn.contains("x (log scale)") && drawn.contains("y (log scale)"));
}

#[test]
fn points_without_a_line_and_ticks_at_values_are_drawn() {
    let loose = Series {
        loose: true,
        ..Series::line("runs", 0, [(1.0, 1.0), (2.0, f64::NAN), (8.0, 3.0)])
    };
    let ticks = [1.0, 2.0, 8.0].map(|v| (v, format!("{v}KiB")));
    let x = Axis {
        at: ticks.to_vec(),
        ..Axis::log("size", Unit::Number)
    };
    let file = Chart::lines("c", x, Axis::linear("y", Unit::PerS), [loose]).file();
    assert!(
        file.contains(" d=\"\"/>") && !file.contains("NaN"),
        "{file}"
    );
    // Two points and the key of the legend.
    assert_eq!(file.matches("class=\"mk c0\"").count(), 3);
    assert!(
        [">1KiB<", ">2KiB<", ">8KiB<"]
            .iter()
            .all(|tick| file.contains(tick))
    );
}

#[test]
fn bands_gaps_and_cells_are_drawn() {
    let points = [(1.0, 1.0), (2.0, f64::NAN), (3.0, 2.0), (4.0, 3.0)];
    let mut line = Series::line("a", 0, points);
    for point in &mut line.points {
        point.ci = Some((point.y, point.y + 1.0));
    }
    line.band = true;
    let (x, y) = (
        Axis::linear("time", Unit::Seconds),
        Axis::log("response time", Unit::Ns),
    );
    let mut chart = Chart::lines("c", x.clone(), y.clone(), [line]);
    chart.marks.push((3.5, "end".to_owned()));
    let drawn = chart.file();
    // A lone point and a line of two, each with a band.
    assert_eq!(drawn.matches("class=\"band").count(), 1);
    assert_eq!(drawn.matches('Z').count(), 2, "{drawn}");
    assert!(drawn.contains(">end</text>") && !drawn.contains("NaN"));
    let heat = Heat {
        from: 0.0,
        step: 1.0,
        edges: vec![1e3, 1e4, 1e5],
        columns: vec![vec![0, 7], vec![7, 0]],
    };
    let drawn = Chart::new("h", x.clone(), y.clone(), Body::Heat(heat)).file();
    assert_eq!(drawn.matches("class=\"cell").count(), 1, "one shade");
    let stack = Stack {
        parts: vec![("wait".to_owned(), 0), ("retry".to_owned(), 8)],
        rows: vec![("get".to_owned(), vec![3e6, 1e6])],
        unit: Unit::Ns,
    };
    let drawn = Chart::new("s", x, y, Body::Stack(stack)).figure();
    assert!(drawn.contains("get: wait 3.00 ms (75.0 %)") && drawn.contains("pale"));
}

#[test]
fn file_colours_match_the_list() {
    for (i, colour) in COLOURS.iter().enumerate() {
        assert!(LIGHT.contains(&format!(".c{i}{{stroke:{colour};fill:{colour}}}")));
    }
}
