//! From a list of tests to the tests: `#[test]` functions in the binary of a driver.

/// The functions of a list's tests, for the binaries: one that is in no list is called by nobody.
#[doc(hidden)]
#[macro_export]
macro_rules! __functions {
    ([$home:ident $database:ident] $($subject:ident { $($module:ident: $($test:ident)+;)+ })+) => {
        $(pub mod $subject {
            $(pub mod $module {
                $(pub fn $test(driver: $crate::$database::Driver) {
                    $crate::$home::$subject::$module::$test(driver);
                })+
            })+
        })+
    };
}

/// The tests themselves, which call the functions that `__functions!` makes.
#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    ([$home:ident $database:ident $tested:ident] $($subject:ident { $($module:ident: $($test:ident)+;)+ })+) => {
        mod $home {
            $(mod $subject {
                $(mod $module {
                    $(#[test]
                    fn $test() {
                        use super::super::super::$tested as Tested;
                        let driver = $crate::$database::Driver::of::<Tested>(module_path!());
                        $crate::$database::tests::$home::$subject::$module::$test(driver);
                    })+
                })+
            })+
        }
    };
}
