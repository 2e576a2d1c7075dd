package CdcBridge::Postgres;

# A private PostgreSQL cluster in a temporary folder; any version, the one of PG_CONFIG. It listens on a socket in that folder
# only, which nobody else may enter: with trust authentication a port on loopback would be open to every local user.
#
#   my $postgres = CdcBridge::Postgres->new(conf => "max_worker_processes = 20\n");
#   print $postgres->psql('select 1');
#   $postgres->kill9; $postgres->start;

use strict;
use warnings;

use CdcBridge::Env qw(after_poll free_port is_polling new_folder poll_until reap run_program servers_dir slurp spawn timeout with_template);
use IPC::Open3 qw(open3);
use IO::Select;
use Symbol qw(gensym);

my @all;

sub new
{
	my ($class, %option) = @_;
	my $config = $option{pg_config} // $ENV{PG_CONFIG} // servers_dir() . '/pg15/pg_config';
	my $self = bless {
		bindir => _ask($config, '--bindir'),
		version => _ask($config, '--version'),
		dir => $option{dir} // new_folder('pg', keep => $option{outlive}),
		outlive => $option{outlive},
		port => free_port(),
		owner => $$,
		database => 'postgres',
	}, $class;
	($self->{major}) = $self->{version} =~ /(\d+)/;
	push @all, $self;

	# no fsync: what a killed process wrote is safe with the operating system, and power failures are not tested here
	with_template("pg$self->{major}", "$self->{dir}/data", sub {
		run_program("$self->{dir}/init.log", "$self->{bindir}/initdb", '--no-sync', '-A', 'trust', '-U', 'postgres',
			'-E', 'UTF8', '--locale=C', '-D', $_[0]);
	});
	$self->append_conf(<<"CONF" . ($option{conf} // ''));
listen_addresses = ''
port = $self->{port}
unix_socket_directories = '$self->{dir}'
fsync = off
shared_buffers = 64MB
max_worker_processes = 20
wal_level = logical
timezone = 'UTC'
log_min_messages = info
log_line_prefix = '%m [%p] %b %a '
log_statement = none
autovacuum_naptime = 10s
shared_preload_libraries = 'cdc_bridge'
CONF
	$self->start;
	return $self;
}

sub _ask
{
	my ($config, $what) = @_;
	my $answer = qx('$config' $what 2>&1);
	die "could not run $config: $answer\n" if $?;
	chomp($answer);
	return $answer;
}

sub major { return $_[0]{major}; }
sub port { return $_[0]{port}; }
sub host { return $_[0]{dir}; }
sub dir { return $_[0]{dir}; }
sub bindir { return $_[0]{bindir}; }
sub log_text { return slurp("$_[0]{dir}/log"); }

sub append_conf
{
	my ($self, $text) = @_;
	open(my $conf, '>>', "$self->{dir}/data/postgresql.conf") or die "postgresql.conf: $!\n";
	print $conf "$text\n";
	close($conf);
	return $self;
}

# CDC_POSTGRES_WRAPPER: a program, with arguments, that runs the server (test/run --checker valgrind).
# Start the server and wait until it takes connections. After a kill -9 its children may need a moment to leave, and
# until then the new one refuses to start: so try again.
sub start
{
	my ($self) = @_;
	my $log_before = 0;    # what this attempt says; children of the one that was killed may go on talking
	my $up = poll_until(sub {
		if (!$self->{pid} || reap($self->{pid}, 0))
		{
			die "PostgreSQL did not start:\n" . $self->log_tail
			  if $self->{pid} && substr($self->log_text, $log_before) !~ /pre-existing shared memory|lock file|is still in use/;
			$log_before = -s "$self->{dir}/log" || 0;
			$self->{pid} = spawn("$self->{dir}/log", $self->{outlive}, split(/ /, $ENV{CDC_POSTGRES_WRAPPER} // ''), "$self->{bindir}/postgres", '-D', "$self->{dir}/data");
		}
		return $self->accepts_connections;
	}, $self->{start_timeout} // 120);
	die "PostgreSQL did not start:\n" . $self->log_tail unless $up;
	return $self;
}

# Start as a standby from now on; where from stands in its settings.
sub become_standby
{
	my ($self) = @_;
	open(my $out, '>', "$self->{dir}/data/standby.signal") or die "standby.signal: $!\n";
	close($out);
	return $self;
}

sub accepts_connections
{
	my ($self) = @_;
	return system("'$self->{bindir}/pg_isready' -q -h '$self->{dir}' -p $self->{port}") == 0;
}

# Ends the server by SIGINT ("fast"), as pg_ctl stop does.
sub stop
{
	my ($self) = @_;
	my $pid = $self->{pid} or return $self;
	kill('INT', $pid);
	if (!reap($pid, 60))
	{
		kill('QUIT', $pid);
		reap($pid, 10) or kill('KILL', $pid);
		delete $self->{pid};
		die "PostgreSQL did not stop within a minute:\n" . $self->log_tail;
	}
	delete $self->{pid};
	return $self;
}

sub restart
{
	my ($self) = @_;
	return $self->stop->start;
}

# kill -9 of the postmaster; its children notice and leave.
sub kill9
{
	my ($self) = @_;
	my $pid = delete $self->{pid} or return $self;
	kill('KILL', $pid);
	reap($pid);
	return $self;
}

# kill -9 of server processes: the postmaster then restarts all of them. Returns when it has, so that no later question is
# answered from before the crash.
sub kill9_process
{
	my ($self, @pids) = @_;
	my ($bad) = grep { !/^\d+$/ } @pids;
	die "not a process id: $bad\n" if defined $bad;
	kill('KILL', @pids);
	$self->poll('select count(*) from pg_stat_activity where pid in (' . join(', ', @pids) . ')', '0', 120)
	  or die "PostgreSQL did not come back\n" . $self->log_tail;
	return $self;
}

sub log_tail
{
	my ($self, $lines) = @_;
	my @lines = split(/^/, $self->log_text);
	my $from = @lines - ($lines // 40);
	return join('', @lines[ ($from < 0 ? 0 : $from) .. $#lines ]);
}

# Run SQL; returns (exit status, output, errors). Options: database, user. Queries that are polled share a session as long as the poll
# lasts: a program and a server process for each would be most of what the tests cost.
sub try_psql
{
	my ($self, $sql, %option) = @_;
	return $self->_ask_again($sql) if is_polling() && !%option && $sql =~ /^\s*(select|show|with)\b/i;
	my $psql = $self->_start_psql(%option);
	local $SIG{PIPE} = 'IGNORE';
	print { $psql->{in} } $sql;
	close($psql->{in});
	return _end_psql($psql);
}

sub _start_psql
{
	my ($self, %option) = @_;
	my @command = ("$self->{bindir}/psql", '-XAtq', '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose', '-h', $self->{dir},
		'-p', $self->{port}, '-U', $option{user} // 'postgres', '-d', $option{database} // $self->{database}, '-f', '-');
	local $ENV{PGTZ} = 'UTC';
	local $ENV{PGCLIENTENCODING} = 'UTF8';
	my $pid = open3(my $in, my $out, my $err = gensym, @command);
	return { pid => $pid, in => $in, out => $out, err => $err, text => { out => '', err => '' }, owner => $$, database => $self->{database} };
}

# Take in what it prints until END is at the end of a line of its own; false when it has ended before.
sub _read_psql
{
	my ($psql, $end) = @_;
	my $select = IO::Select->new(grep { defined } @$psql{qw(out err)});
	until (defined $end && $psql->{text}{out} =~ s/(^|\n)\Q$end\E\n\z//)
	{
		my @ready = $select->can_read or return 0;
		for my $handle (@ready)
		{
			my ($name) = grep { defined $psql->{$_} && $psql->{$_} == $handle } qw(out err);
			next if sysread($handle, $psql->{text}{$name}, 1 << 16, length($psql->{text}{$name}));
			$select->remove($handle);
			delete $psql->{$name};
		}
	}
	return 1;
}

sub _end_psql
{
	my ($psql) = @_;
	_read_psql($psql);
	waitpid($psql->{pid}, 0);
	my $status = $? >> 8;
	return ($status, $psql->{text}{out} =~ s/\n\z//r, $psql->{text}{err});
}

my $asked = 0;
sub _ask_again
{
	my ($self, $sql) = @_;
	my $psql = $self->{again};
	if (!$psql || $psql->{owner} != $$ || $psql->{database} ne $self->{database})
	{
		$self->_stop_asking if $psql;
		$psql = $self->{again} = $self->_start_psql;
		after_poll(sub { $self->_stop_asking; });
	}
	my $end = 'that was ' . ++$asked;
	$psql->{text} = { out => '', err => '' };
	local $SIG{PIPE} = 'IGNORE';
	$sql .= "\n;" unless $sql =~ /;\s*\z/;
	syswrite($psql->{in}, "$sql\n\\echo $end\n");
	return (0, @{ $psql->{text} }{qw(out err)}) if _read_psql($psql, $end);
	# the query or the server failed
	delete $self->{again};
	return _end_psql($psql);
}

sub _stop_asking
{
	my ($self) = @_;
	my $psql = delete $self->{again};
	return if !$psql || $psql->{owner} != $$;
	local $SIG{PIPE} = 'IGNORE';
	syswrite($psql->{in}, "\\q\n");
	close($psql->{in});
	_end_psql($psql);
	return;
}

# Run SQL, die on an error; returns the output: columns separated by |, without headings.
sub psql
{
	my ($self, $sql, %option) = @_;
	my ($status, $out, $err) = $self->try_psql($sql, %option);
	die "psql failed: $sql\n$err\n" if $status != 0;
	$self->{messages} = $err;
	return $out;
}

my $held = q{select count(*) from pg_stat_activity where application_name = 'in the way' and state = 'idle in transaction'};

# A session with a transaction that has run the statement and stays open until release(): in the way of others.
sub hold
{
	my ($self, $statement) = @_;
	open(my $session, '|-', "$self->{bindir}/psql", '-qXAt', '-o', '/dev/null', '-h', $self->{dir}, '-p', $self->{port}, '-U', 'postgres', '-d', 'postgres') or die "psql: $!";
	$session->autoflush(1);
	my $before = $self->psql($held);
	print $session "set application_name = 'in the way'; begin; $statement;\n";
	$self->poll($held, $before + 1) or die "no session\n";
	return $session;
}

sub release
{
	my ($self, $session) = @_;
	local $SIG{PIPE} = 'IGNORE';    # it may have been ended
	print $session "commit;\n";
	return close($session);
}

# Run SQL that is expected to fail; returns the error text ('' when it did not fail).
sub psql_error
{
	my ($self, $sql, %option) = @_;
	my ($status, $out, $err) = $self->try_psql($sql, %option);
	return $status == 0 ? '' : $err;
}

# Allow our output plugin, on servers that allow only those that output_plugin_libraries lists (minor releases since 15.19).
sub allow_output_plugin
{
	my ($self) = @_;
	my $list = 'pgoutput, test_decoding, cdc_bridge';
	return $self if $self->psql(q{select count(*) from pg_settings where name = 'output_plugin_libraries'}) eq '0';
	$self->psql("alter system set output_plugin_libraries = $list; select pg_reload_conf()");
	$self->poll('show output_plugin_libraries', $list) or die "output_plugin_libraries is not $list: $self->{last}\n";
	return $self;
}

# Poll until QUERY gives EXPECTED (text, or a regular expression); errors count as "not yet", as after a crash. False,
# with the last answer in $self->{last}, when the time is over.
sub poll
{
	my ($self, $query, $expected, $seconds) = @_;
	return poll_until(sub {
		my ($status, $out, $err) = $self->try_psql($query);
		$self->{last} = $status == 0 ? $out : $err;
		return $status == 0 && (ref $expected ? $out =~ $expected : $out eq ($expected // 't'));
	}, $seconds);
}

END
{
	my $status = $?;
	for my $self (grep { $_->{owner} == $$ && !$_->{outlive} } @all)
	{
		my $pid = delete $self->{pid} or next;
		kill('INT', $pid);
		reap($pid, 10) or do { kill('QUIT', $pid); reap($pid, 5) or kill('KILL', $pid); };
	}
	$? = $status;
}

1;
