package CdcBridge::Source;

# A private MariaDB or MySQL server: loopback, free port, temporary folder.
#
#   my $source = CdcBridge::Source->new(args => ['--binlog-format=STATEMENT']);   # server from CDC_SOURCE
#   $source->sql('create table t (...)', 'insert ...');
#   $source->kill9; $source->start;
#
# Servers: mariadb (the system's), mariadb118 and mysql (unpacked below build/servers). All text goes in and out as UTF-8 bytes.

use strict;
use warnings;

use CdcBridge::Env qw(copy_tree free_port new_folder poll_until reap run_program servers_dir slurp spawn with_template);
use DBI;
use File::Path qw(make_path);

my @all;

my %flavor_of = (mariadb => 'mariadb', mariadb118 => 'mariadb', mysql => 'mysql');

# server => one of them, args => [further server options], outlive => the server survives this script
sub new
{
	my ($class, %option) = @_;
	my $server = $option{server} // $ENV{CDC_SOURCE} // 'mariadb';
	my $flavor = $flavor_of{$server} or die "unknown source server $server\n";
	my $self = bless {
		server => $server,
		flavor => $flavor,
		home => $server eq 'mariadb' ? undef : servers_dir() . "/$server",
		args => $option{args} // [],
		outlive => $option{outlive},
		owner => $$,
		port => free_port(),
		dir => $option{dir} // new_folder('source', keep => $option{outlive}),
		user => 'repl',
		password => 'repl-secret',
	}, $class;
	push @all, $self;

	with_template($server, "$self->{dir}/data", sub { $self->_initialise(@_) });
	unlink("$self->{dir}/data/auto.cnf");    # holds MySQL's server_uuid: every copy makes its own
	$self->start;
	# the administrator comes by the socket, in a folder that nobody else may enter; other users have passwords
	for ($self->query_rows(q{select user, host from mysql.user where host <> 'localhost' or user = ''}))
	{
		$self->sql("drop user '$_->[0]'\@'$_->[1]'");
	}
	$self->create_user($self->{user}, $self->{password});
	return $self;
}

sub host { return '127.0.0.1'; }
sub port { return $_[0]{port}; }
sub user { return $_[0]{user}; }
sub password { return $_[0]{password}; }
sub flavor { return $_[0]{flavor}; }
sub is_mysql { return $_[0]{flavor} eq 'mysql'; }
sub is_mariadb { return $_[0]{flavor} eq 'mariadb'; }
sub pid { return $_[0]{pid}; }
# As a number that can be compared: 101119, 110809, 90704.
sub version { my ($self) = @_; my @part = split(/\D/, $self->query_value('select version()')); return $part[0] * 10000 + $part[1] * 100 + $part[2]; }
sub has_full_nodup { my ($self) = @_; return $self->is_mariadb && $self->version >= 110400; }    # a binlog_row_image
sub has_vectors { my ($self) = @_; return $self->is_mysql || $self->version >= 110700; }
sub client { my ($self) = @_; return $self->{home} ? "$self->{home}/bin/$self->{flavor}" : 'mariadb'; }
sub log_text { return slurp("$_[0]{dir}/error.log"); }

sub _initialise
{
	my ($self, $data) = @_;
	my $home = $self->{home};
	if ($self->is_mysql)
	{
		run_program("$self->{dir}/init.log", "$home/bin/mysqld", $self->_paths, "--datadir=$data", '--initialize-insecure',
			'--innodb-redo-log-capacity=64M');
	}
	else
	{
		run_program("$self->{dir}/init.log", $home ? ("$home/bin/mariadb-install-db", '--no-defaults', "--basedir=$home") : ('mariadb-install-db', '--no-defaults'),
			"--datadir=$data", '--auth-root-authentication-method=normal', '--skip-test-db', '--force',    # also where no host name resolves
			"--tmpdir=$self->{dir}",    # a server that starts removes what others have in theirs
			'--innodb-log-file-size=32M');
	}
}

# Options that a server wants which does not run from where it was built for.
sub _paths
{
	my ($self) = @_;
	my $home = $self->{home} or return ('--no-defaults');
	my $share = "$home/share" . ($self->is_mysql ? '' : '/mariadb');
	return ('--no-defaults', $self->is_mysql ? '--secure-file-priv=NULL' : (), "--lc-messages-dir=$share",
		"--character-sets-dir=$share/charsets", "--plugin-dir=$home/plugin");
}

sub _command
{
	my ($self) = @_;
	my $dir = $self->{dir};
	# a temporary folder of its own: a server that starts removes what looks left over in there, also when it is another's
	make_path("$dir/tmp");
	# no fsync of tables: what a killed server wrote is safe with the operating system, and power failures are not tested here
	my @common = ($self->_paths, '--innodb-flush-method=nosync', "--datadir=$dir/data", "--tmpdir=$dir/tmp", "--port=$self->{port}", '--bind-address=127.0.0.1',
		"--socket=$dir/s.sock", "--pid-file=$dir/server.pid", "--log-error=$dir/error.log", '--log-bin=bl', '--binlog-row-metadata=FULL',
		'--skip-name-resolve', '--character-set-server=utf8mb4', '--innodb-buffer-pool-size=64M', '--sync-binlog=0',
		'--innodb-flush-log-at-trx-commit=2', '--max-connections=100');
	return ("$self->{home}/bin/mysqld", @common, '--server-id=62', '--gtid-mode=ON', '--enforce-gtid-consistency=ON', '--mysqlx=OFF',
		'--performance-schema=OFF', '--innodb-redo-log-capacity=64M', @{ $self->{args} })
	  if $self->is_mysql;
	return ($self->{home} ? "$self->{home}/bin/mariadbd" : '/usr/sbin/mariadbd', @common, '--server-id=61', '--binlog-format=ROW',
		'--gtid-strict-mode=ON', '--innodb-log-file-size=32M', @{ $self->{args} });
}

sub start
{
	my ($self) = @_;
	$self->{pid} = spawn("$self->{dir}/out.log", $self->{outlive}, $self->_command);
	my $up = poll_until(sub {
		die "the $self->{flavor} server ended while starting:\n" . slurp("$self->{dir}/out.log") . $self->log_text
		  if reap($self->{pid}, 0);
		return eval { $self->connect; 1 };
	});
	die "the $self->{flavor} server did not start:\n" . $self->log_text unless $up;
	return $self;
}

sub stop { return $_[0]->_end('TERM'); }
sub kill9 { return $_[0]->_end('KILL'); }

sub restart
{
	my ($self) = @_;
	$self->stop;
	return $self->start;
}

sub _end
{
	my ($self, $signal) = @_;
	my $pid = delete $self->{pid} or return $self;
	# in an orderly stop nobody waits for locks of ours; before a kill they stay, or others would write until the signal comes
	delete $self->{dbh} if $signal ne 'KILL';
	kill($signal, $pid);
	reap($pid) or kill('KILL', $pid);
	delete $self->{dbh};
	return $self;
}

# A new connection as the administrator, or as USER with PASSWORD over TCP.
sub connect
{
	my ($self, $user, $password) = @_;
	my $where = defined $user ? "host=127.0.0.1;port=$self->{port}" : "mysql_socket=$self->{dir}/s.sock";
	my $dbh = DBI->connect("dbi:mysql:;$where", $user // 'root', $password // '',
		{ RaiseError => 1, PrintError => 0, AutoCommit => 1, AutoInactiveDestroy => 1 });
	$dbh->do(q{set names utf8mb4});
	$dbh->do(q{set time_zone = '+00:00'});
	return $dbh;
}

sub dbh
{
	my ($self) = @_;
	# a handle that was inherited over a fork belongs to the parent
	delete $self->{dbh} if ($self->{dbh_owner} // 0) != $$;
	$self->{dbh_owner} = $$;
	$self->{dbh} = $self->connect unless $self->{dbh} && $self->{dbh}->ping;
	return $self->{dbh};
}

sub sql
{
	my ($self, @statements) = @_;
	for (@statements)
	{
		eval { $self->dbh->do($_); 1 } or die "$self->{flavor} refused: $_\n$@";
	}
	return $self;
}

# Rows as references to arrays of bytes.
sub query_rows
{
	my ($self, $query) = @_;
	return @{ $self->dbh->selectall_arrayref($query) };
}

sub query_value
{
	my ($self, $query) = @_;
	my ($row) = $self->query_rows($query);
	return $row ? $row->[0] : undef;
}

# Where the binary log ends: (file, offset).
sub binlog_position
{
	my ($self) = @_;
	my ($row) = $self->query_rows($self->is_mysql ? 'show binary log status' : 'show master status');
	die "the server writes no binary log\n" unless $row;
	return ($row->[0], $row->[1]);
}

# True when the log holds no transaction from FILE, OFFSET on: only file headers, rotations and the like, as after a
# restart. Undef, with the reason in $self->{log_error}, when the log could not be read: a server that is writing it refuses now and then.
sub nothing_after
{
	my ($self, $file, $offset) = @_;
	my $nothing = eval {
		my @files = map { $_->[0] } $self->query_rows('show binary logs');
		my $found = 0;
		for my $name (grep { _file_number($_) >= _file_number($file) } @files)
		{
			my $from = $name eq $file ? "from $offset" : '';
			$found ||= grep { $_->[2] !~ /^(Format_desc|Rotate|Stop|Previous_gtids|Gtid_list|Binlog_checkpoint|Start_encryption)$/i }
			  $self->query_rows("show binlog events in '$name' $from");
			last if $found;
		}
		$found ? 0 : 1;
	};
	$self->{log_error} = defined $nothing ? '' : $@;
	return $nothing;
}

sub _file_number { my ($number) = $_[0] =~ /\.(\d+)$/; return $number // 0; }

# Make a user with what the extension asks for, or with the given privileges only ('' for none).
sub create_user
{
	my ($self, $user, $password, $privileges) = @_;
	$privileges //= 'select, replication slave, replication client';
	my $dbh = $self->dbh;
	$dbh->do("create user if not exists '$user'\@'%' identified by '$password'");
	$dbh->do("grant $privileges on *.* to '$user'\@'%'") if $privileges ne '';
	return $self;
}

sub set_password
{
	my ($self, $user, $password) = @_;
	return $self->sql("alter user '$user'\@'%' identified by '$password'");
}

# Forget the log and all GTIDs, so that this server has no history of its own.
sub forget_log
{
	my ($self) = @_;
	return $self->sql('reset binary logs and gtids') if $self->is_mysql;
	return $self->sql('reset master', q{set global gtid_slave_pos = ''});
}

# Begin to apply what FROM logs, by GTIDs; this server must have nothing that FROM has not.
sub replicate_from
{
	my ($self, $from) = @_;
	my ($host, $port, $user, $password) = ($from->host, $from->port, $from->user, $from->password);
	return $self->sql("change replication source to source_host = '$host', source_port = $port, source_user = '$user', "
		  . "source_password = '$password', source_auto_position = 1, get_source_public_key = 1, source_connect_retry = 1", 'start replica')
	  if $self->is_mysql;
	return $self->sql("change master to master_host = '$host', master_port = $port, master_user = '$user', "
		  . "master_password = '$password', master_use_gtid = slave_pos, master_connect_retry = 1", 'start slave');
}

# Stop applying; what has been received is applied first.
sub promote
{
	my ($self) = @_;
	my $status = $self->is_mysql ? 'show replica status' : 'show slave status';
	my $waiting = qr/has read all relay log/i;
	my $done = poll_until(sub {
		my $row = $self->dbh->selectrow_hashref($status) or return 0;
		return ($row->{Replica_SQL_Running_State} // $row->{Slave_SQL_Running_State} // '') =~ $waiting;
	});
	die "the replica does not come to the end of its relay log\n" unless $done;
	return $self->sql($self->is_mysql ? ('stop replica', 'reset replica all') : ('stop slave', 'reset slave all'));
}

# All GTIDs that are in the log, without blanks.
sub gtids
{
	my ($self) = @_;
	return $self->query_value($self->is_mysql ? 'select @@global.gtid_executed' : 'select @@global.gtid_binlog_pos') =~ s/\s//gr;
}

# Wait until this server has applied all that FROM has logged by now.
sub wait_for_replica
{
	my ($self, $from) = @_;
	my $gtids = $from->gtids;
	my $ask = $self->is_mysql ? "select gtid_subset('$gtids', \@\@global.gtid_executed)"
	  : "select master_gtid_wait('$gtids', 0.1) = 0";
	return $self if poll_until(sub { return $self->query_value($ask); });
	my $row = $self->dbh->selectrow_hashref($self->is_mysql ? 'show replica status' : 'show slave status') // {};
	my @errors = $self->log_text =~ /^(.*\[ERROR\].*)$/mg;
	splice(@errors, 0, -5) if @errors > 5;
	die "the replica does not come to $gtids\n" . join("\n", @errors, '') . join('', map { "$_: $row->{$_}\n" } grep { /Error$|State$|_Running$/ && ($row->{$_} // '') ne '' } sort keys %$row);
}

# Run CODE->($dbh, $number) in COUNT forked processes, each with a connection of its own, until stop_writers.
sub start_writers
{
	my ($self, $count, $code) = @_;
	my $stop_file = "$self->{dir}/stop-writers";
	unlink($stop_file);
	for my $number (1 .. $count)
	{
		my $pid = fork() // die "could not fork: $!\n";
		if ($pid)
		{
			push @{ $self->{writers} }, $pid;
			next;
		}
		srand($number * 7919 + ($self->{seed} // 1));
		until (-e $stop_file)
		{
			# the server may be killed under us: then we come back when it does
			my $dbh = eval { $self->connect } or do { select(undef, undef, undef, 0.1); next; };
			eval { $code->($dbh, $number) until -e $stop_file; };
			warn "# writer $number: $@" if $@ && $@ !~ /(gone away|Lost connection|Can't connect|shutdown|deadlock|lock wait)/i;
		}
		POSIX::_exit(0);
	}
	return $self;
}

sub stop_writers
{
	my ($self) = @_;
	open(my $file, '>', "$self->{dir}/stop-writers");
	close($file);
	for my $pid (@{ delete $self->{writers} // [] })
	{
		reap($pid, 30) or kill('KILL', $pid), reap($pid, 5);
	}
	return $self;
}

END
{
	my $status = $?;
	for my $self (grep { $_->{owner} == $$ } @all)
	{
		kill('KILL', @{ $self->{writers} // [] });
		$self->_end('KILL') if !$self->{outlive};
	}
	$? = $status;
}

1;
