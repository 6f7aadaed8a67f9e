//! The table of programs: how to find each, and its commands.
//!
//! A command consists of words. In a word `{bucket}`, `{key}`, `{region}` and `{alias}` are placeholders; `{file}` is a
//! whole word. A word after a question mark is omitted if there is no key.

/// A program and its commands.
pub(super) struct Program {
    /// File name on the PATH.
    pub(super) name: &'static str,
    /// Scheme of the supported targets; `None` for S3.
    pub(super) scheme: Option<&'static str>,
    /// The argument that prints the version.
    pub(super) version_word: &'static str,
    /// Text that the line with the version must contain.
    pub(super) sign: &'static str,
    /// How to install it.
    pub(super) remedy: &'static str,
    pub(super) put: &'static str,
    pub(super) get: &'static str,
    pub(super) head: &'static str,
    pub(super) delete: &'static str,
    /// Everything below a prefix.
    pub(super) list: &'static str,
    /// A folder: keys up to the next slash.
    pub(super) list_folder: &'static str,
    pub(super) make_bucket: &'static str,
    /// `None` if the program's command would also delete the objects in the bucket.
    pub(super) delete_bucket: Option<&'static str>,
    pub(super) list_buckets: &'static str,
    /// Where the output of `head` contains the size.
    pub(super) size: Size,
}

/// Position of an object's size in a line.
pub(super) enum Size {
    /// After these words.
    After(&'static str),
    /// In the field `size` of a JSON object.
    Json,
    /// The whole line.
    Line,
}

pub(super) static AWS: Program = Program {
    name: "aws",
    scheme: None,
    version_word: "--version",
    sign: "aws-cli",
    remedy: "install it (pip install awscli) and put it on the PATH",
    put: "s3 cp --only-show-errors {file} s3://{bucket}/{key}",
    get: "s3 cp --only-show-errors s3://{bucket}/{key} {file}",
    head: "s3api head-object --output json --bucket {bucket} --key {key}",
    delete: "s3 rm --only-show-errors s3://{bucket}/{key}",
    list: "s3 ls --recursive s3://{bucket}/{key}",
    list_folder: "s3 ls s3://{bucket}/{key}",
    make_bucket: "s3 mb s3://{bucket}",
    delete_bucket: Some("s3 rb s3://{bucket}"),
    list_buckets: "s3 ls",
    size: Size::After("\"ContentLength\""),
};

pub(super) static MC: Program = Program {
    name: "mc",
    scheme: None,
    version_word: "--version",
    sign: "mc version",
    remedy: "install it (go install github.com/minio/mc@latest) and put it on the PATH; \
             Midnight Commander has the same name",
    put: "cp {file} {alias}/{bucket}/{key}",
    get: "cp {alias}/{bucket}/{key} {file}",
    head: "stat {alias}/{bucket}/{key}",
    delete: "rm {alias}/{bucket}/{key}",
    list: "ls --recursive {alias}/{bucket}/{key}",
    list_folder: "ls {alias}/{bucket}/{key}",
    make_bucket: "mb --region {region} {alias}/{bucket}",
    delete_bucket: Some("rb {alias}/{bucket}"),
    list_buckets: "ls {alias}",
    size: Size::Json,
};

pub(super) static RCLONE: Program = Program {
    name: "rclone",
    scheme: None,
    version_word: "--version",
    sign: "rclone v",
    remedy: "install it (apt-get install rclone) and put it on the PATH",
    put: "copyto --s3-no-check-bucket {file} {alias}:{bucket}/{key}",
    get: "copyto {alias}:{bucket}/{key} {file}",
    head: "lsjson --stat {alias}:{bucket}/{key}",
    delete: "deletefile {alias}:{bucket}/{key}",
    list: "lsf --recursive --files-only {alias}:{bucket}/{key}",
    list_folder: "lsf {alias}:{bucket}/{key}",
    make_bucket: "mkdir {alias}:{bucket}",
    delete_bucket: Some("rmdir {alias}:{bucket}"),
    list_buckets: "lsf {alias}:",
    size: Size::After("\"Size\""),
};

pub(super) static S3CMD: Program = Program {
    name: "s3cmd",
    scheme: None,
    version_word: "--version",
    sign: "s3cmd version",
    remedy: "install it (pip install s3cmd) and put it on the PATH",
    put: "put {file} s3://{bucket}/{key}",
    get: "get --force s3://{bucket}/{key} {file}",
    head: "info s3://{bucket}/{key}",
    delete: "del s3://{bucket}/{key}",
    list: "ls --recursive s3://{bucket}/{key}",
    list_folder: "ls s3://{bucket}/{key}",
    make_bucket: "mb s3://{bucket}",
    delete_bucket: Some("rb s3://{bucket}"),
    list_buckets: "ls",
    size: Size::After("File size"),
};

pub(super) static SWIFT: Program = Program {
    name: "swift",
    scheme: Some("swift"),
    version_word: "--version",
    sign: "python-swiftclient",
    remedy: "install it (pip install python-swiftclient) and put it on the PATH",
    put: "upload --object-name {key} {bucket} {file}",
    get: "download {bucket} {key} --output {file}",
    head: "stat {bucket} {key}",
    delete: "delete {bucket} {key}",
    list: "list {bucket} --prefix {key}",
    list_folder: "list {bucket} --prefix {key} --delimiter /",
    make_bucket: "post {bucket}",
    delete_bucket: None,
    list_buckets: "list",
    size: Size::After("Content Length"),
};

/// A name with a leading hyphen is safe after an equals sign. The query of a listing prints every name on its own line.
pub(super) static AZ: Program = Program {
    name: "az",
    scheme: Some("az"),
    // `--version` would also check for a newer version online.
    version_word: "version",
    sign: "\"azure-cli\"",
    remedy: "install it (pip install azure-cli) and put it on the PATH",
    put: "storage blob upload --container-name {bucket} --name={key} --overwrite --output none \
          --file {file}",
    get: "storage blob download --container-name {bucket} --name={key} --output none --file {file}",
    head: "storage blob show --container-name {bucket} --name={key} \
           --query properties.contentLength --output tsv",
    delete: "storage blob delete --container-name {bucket} --name={key} --output none",
    list: "storage blob list --container-name {bucket} --num-results * --query [].name \
           --output tsv ?--prefix={key}",
    list_folder: "storage blob list --container-name {bucket} --num-results * --query [].name \
                  --output tsv ?--prefix={key} --delimiter=/",
    make_bucket: "storage container create --fail-on-exist --output none --name {bucket}",
    delete_bucket: None,
    list_buckets: "storage container list --num-results * --query [].name --output tsv",
    size: Size::Line,
};

pub(super) static GSUTIL: Program = Program {
    name: "gsutil",
    scheme: Some("gs"),
    version_word: "--version",
    sign: "gsutil version",
    remedy: "install it (pip install gsutil) and put it on the PATH",
    put: "-q cp {file} gs://{bucket}/{key}",
    get: "-q cp gs://{bucket}/{key} {file}",
    head: "stat gs://{bucket}/{key}",
    delete: "-q rm gs://{bucket}/{key}",
    list: "ls gs://{bucket}/{key}**",
    list_folder: "ls -d gs://{bucket}/{key}*",
    make_bucket: "-q mb gs://{bucket}",
    delete_bucket: Some("-q rb gs://{bucket}"),
    list_buckets: "ls",
    size: Size::After("Content-Length"),
};
