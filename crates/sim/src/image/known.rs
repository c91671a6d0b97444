//! Images that everybody knows: what their own program does when a pod names no command, and which programs they have.
//!
//! An image is known by the last part of its name, wherever it comes from.

/// An image that everybody knows.
#[derive(Debug)]
pub(crate) struct Known {
    names: &'static [&'static str],
    /// What it runs by itself.
    pub(crate) runs: Runs,
    /// Programs that few other images have.
    pub(crate) programs: &'static [&'static str],
}

/// What an image runs by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// A server: it runs until it is stopped.
    Server,
    /// A shell or an interpreter: it ends at once and well, unless somebody may talk to it.
    Shell,
    /// A program that does this and ends.
    Script(&'static str),
    /// A server that ends with a message unless one of these variables is set.
    Needs(&'static [&'static str], &'static str),
}

const fn known(names: &'static [&'static str], runs: Runs, programs: &'static [&'static str]) -> Known {
    Known { names, runs, programs }
}

const TABLE: [Known; 22] = [
    known(&["busybox"], Runs::Shell, &["httpd", "nc", "telnet"]),
    known(&["alpine"], Runs::Shell, &["apk"]),
    known(&["debian", "ubuntu"], Runs::Shell, &["apt", "apt-get", "dpkg", "perl"]),
    known(
        &["centos", "fedora", "rockylinux", "amazonlinux", "almalinux"],
        Runs::Shell,
        &["yum", "dnf", "rpm", "python3"],
    ),
    known(&["bash"], Runs::Shell, &[]),
    known(&["perl"], Runs::Shell, &["cpan", "cpanm"]),
    known(&["python"], Runs::Shell, &["python", "python3", "pip", "pip3", "gunicorn", "uvicorn"]),
    known(&["node"], Runs::Shell, &["node", "npm", "npx", "yarn"]),
    known(&["ruby"], Runs::Shell, &["ruby", "irb", "gem", "bundle", "rake"]),
    known(&["golang"], Runs::Shell, &["go", "gofmt", "git"]),
    known(&["hello-world"], Runs::Script("echo; echo 'Hello from Docker!'"), &["/hello"]),
    known(
        &["curl"],
        Runs::Script("echo \"curl: try 'curl --help' or 'curl --manual' for more information\" >&2; exit 2"),
        &[],
    ),
    known(&["nginx"], Runs::Server, &["nginx", "nginx-debug"]),
    known(&["httpd"], Runs::Server, &["httpd", "httpd-foreground", "apachectl"]),
    known(&["redis"], Runs::Server, &["redis-server", "redis-cli", "redis-sentinel", "redis-benchmark"]),
    known(&["memcached"], Runs::Server, &["memcached"]),
    known(&["rabbitmq"], Runs::Server, &["rabbitmq-server", "rabbitmqctl", "rabbitmq-diagnostics"]),
    known(&["mongo"], Runs::Server, &["mongod", "mongos", "mongosh", "mongo"]),
    known(&["pause"], Runs::Server, &["/pause", "pause"]),
    known(&["agnhost"], Runs::Server, &["/agnhost", "agnhost"]),
    known(
        &["postgres"],
        Runs::Needs(
            &["POSTGRES_PASSWORD", "POSTGRES_PASSWORD_FILE", "POSTGRES_HOST_AUTH_METHOD"],
            "Error: Database is uninitialized and superuser password is not specified.",
        ),
        &["postgres", "psql", "pg_isready", "pg_dump", "pg_ctl", "initdb", "createdb"],
    ),
    known(
        &["mysql", "mariadb"],
        Runs::Needs(
            &[
                "MYSQL_ROOT_PASSWORD",
                "MYSQL_ROOT_PASSWORD_FILE",
                "MYSQL_ALLOW_EMPTY_PASSWORD",
                "MYSQL_RANDOM_ROOT_PASSWORD",
                "MARIADB_ROOT_PASSWORD",
                "MARIADB_ROOT_PASSWORD_FILE",
                "MARIADB_ALLOW_EMPTY_ROOT_PASSWORD",
                "MARIADB_RANDOM_ROOT_PASSWORD",
                "MARIADB_ROOT_PASSWORD_HASH",
            ],
            "[ERROR] [Entrypoint]: Database is uninitialized and password option is not specified",
        ),
        &[
            "mysqld",
            "mysql",
            "mysqladmin",
            "mysqldump",
            "mariadbd",
            "mariadb",
            "mariadb-admin",
            "healthcheck.sh",
        ],
    ),
];

/// What is known about an image.
pub(crate) fn find(image: &str) -> Option<&'static Known> {
    let name = super::repository(image).rsplit('/').next().unwrap_or_default();
    TABLE.iter().find(|known| known.names.contains(&name))
}
