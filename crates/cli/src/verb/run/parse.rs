//! Values on the command line.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use cosched_core::{Nanos, TimeLimit};
use cosched_run::SoloTimes;
use cosched_run::input::WEIGHTS;
use std::error::Error;
use std::str::FromStr;
use strum::{EnumMessage, IntoEnumIterator};

/// A parser of words, each with its comment as help.
pub fn words<T>() -> impl TypedValueParser<Value = T>
where
    T: IntoEnumIterator + EnumMessage + Into<&'static str> + FromStr,
    T: Clone + Send + Sync + 'static,
    T::Err: Into<Box<dyn Error + Send + Sync>>,
{
    let mut offered = Vec::new();
    for word in T::iter() {
        let help = word.get_documentation();
        offered.push(PossibleValue::new(word.into()).help(help));
    }
    PossibleValuesParser::new(offered).try_map(|word| word.parse())
}

/// Reads where solo times come from.
pub fn solo(text: &str) -> Result<SoloTimes, String> {
    Ok(match text {
        "measure" => SoloTimes::Measured,
        "only" => SoloTimes::OnlyMeasured,
        file => SoloTimes::File(file.into()),
    })
}

/// Reads the limit of a job's time: a duration, or per cent of the median time of the jobs that have ended.
pub fn time_limit(text: &str) -> Result<TimeLimit, String> {
    match text.strip_suffix('%') {
        None => duration(text).map(TimeLimit::Fixed),
        Some(share) => match share.parse::<u32>() {
            Ok(share @ 1..=1_000_000) => Ok(TimeLimit::PercentOfMedian(share)),
            _ => Err("expected a share of the median time of the jobs, as in 200%".to_owned()),
        },
    }
}

/// Reads a duration above zero: `90s`, `5m`, `1h 30m`, or plain seconds.
pub fn duration(text: &str) -> Result<Nanos, String> {
    let expected = || "expected a duration above zero, as in 90s, 5m, 8h or 1.5".to_owned();
    if let Ok(seconds) = text.parse::<f64>() {
        return if seconds > 0.0 && seconds < 1e9 {
            Ok(Nanos::from_s(seconds))
        } else {
            Err(expected())
        };
    }
    let parsed = humantime::parse_duration(text).map_err(|_| expected())?;
    let ns = u64::try_from(parsed.as_nanos()).ok().filter(|&ns| ns > 0);
    ns.map(Nanos).ok_or_else(expected)
}

/// Reads a time since the start of a run: as a duration, or 0.
pub fn moment(text: &str) -> Result<Nanos, String> {
    let zero = ["0", "0s", "0ms"].contains(&text);
    if zero {
        Ok(Nanos::ZERO)
    } else {
        duration(text).map_err(|_| "expected a time, as in 0, 90s, 5m or 1.5".to_owned())
    }
}

/// Reads the weight of a job.
pub fn weight(text: &str) -> Result<f64, String> {
    let weight = text.parse().ok();
    // What is no number is in no range.
    let weight = weight.filter(|weight| WEIGHTS.contains(weight));
    weight.ok_or_else(|| {
        let (least, greatest) = WEIGHTS.into_inner();
        format!("expected a number from {least} to {greatest}, as in 2")
    })
}

/// Reads the byte that ends each value: a character, or `\n`, `\t`, `\r` or `\0`.
pub fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        r"\n" => Ok(b'\n'),
        r"\t" => Ok(b'\t'),
        r"\r" => Ok(b'\r'),
        r"\0" => Ok(0),
        _ => match text.as_bytes() {
            [byte] => Ok(*byte),
            _ => Err(r"expected one character, as in , or '\t'".to_owned()),
        },
    }
}

/// Reads a seed.
pub fn seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("expected a whole number from 0 to {}, as in 42", u64::MAX))
}

/// Reads `NAME=VALUE`.
pub fn name_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected NAME=VALUE, as in quantum_s=0.1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("90s"), Ok(Nanos::from_ms(90_000)));
        assert_eq!(duration("1.5"), Ok(Nanos::from_ms(1_500)));
        assert_eq!(duration("1h 1s"), Ok(Nanos::from_ms(3_601_000)));
        for text in ["", "0", "-1", "0s", "x", "nan"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(time_limit("200%"), Ok(TimeLimit::PercentOfMedian(200)));
        assert_eq!(
            time_limit("2s"),
            Ok(TimeLimit::Fixed(Nanos::from_ms(2_000)))
        );
        assert!(time_limit("0%").is_err() && time_limit("x%").is_err());
    }

    #[test]
    fn weights_are_numbers_in_their_range() {
        assert_eq!(weight("2.5"), Ok(2.5));
        for text in ["nan", "-nan", "inf", "-inf", "0", "-1", "1e9", "x"] {
            assert!(weight(text).is_err(), "{text}");
        }
    }
}
